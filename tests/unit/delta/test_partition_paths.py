"""The paths of data files name each partition column as Spark does, and any value is read back from log and path."""

from pathlib import Path
from urllib.parse import unquote

import duckdb
import polars
import pytest

from gamelake.delta.appends import schema_of
from gamelake.delta.data_files import partition_folder
from gamelake.delta.log.codec import live_files
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.rewrites import maintenance_lease, write_replacement
from gamelake.delta.tables import open_table
from gamelake.ledger.reconciliation import file_problems
from gamelake.scans.datasets import dataset
from tests.unit.delta.test_texts_of_all_planes import TABLE, append_texts

VALUES = [
    "ios",
    "a b",
    "a/b",
    "50%",
    "50%25",
    "a%2Fb",
    "x=y",
    "日本",
    "𠮷",
    "?#",
    "tab\t",
    "..",
    "a:b",
    "{}[]^'\"*\\\\",
    "+&",
    "__x",
]


def test_each_column_is_in_the_path_and_special_characters_are_escaped_as_spark_escapes_them() -> None:
    partition = {"event_date": "2026-01-01", "platform": "a/b=c d%é", "event_name": None}

    assert partition_folder(partition) == (
        "event_date=2026-01-01/platform=a%2Fb%3Dc d%25é/event_name=__HIVE_DEFAULT_PARTITION__"
    )
    assert partition_folder({"platform": ""}) == "platform=__HIVE_DEFAULT_PARTITION__"
    assert partition_folder({}) == ""


@pytest.mark.parametrize("length", [246, 247])
def test_a_value_that_no_file_system_takes_as_a_name_is_null_in_the_path(length: int) -> None:
    folder = partition_folder({"event_date": "2026-01-01", "platform": "a" * length, "event_name": "x"})

    kept = "a" * length if length == 246 else "__HIVE_DEFAULT_PARTITION__"
    assert folder == f"event_date=2026-01-01/platform={kept}/event_name=x"


def test_polars_reads_null_for_such_a_value_and_every_other_one(tmp_path: Path) -> None:
    append_texts(tmp_path, ["m"], region="long" * 200)
    append_texts(tmp_path, ["n"], region="eu", batch=1)

    rows = polars.scan_delta(str(tmp_path / TABLE)).select("gamer_id", "region").collect().rows()
    assert sorted(rows) == [("m", None), ("n", "eu")]


@pytest.mark.parametrize("value", [*VALUES, "long" * 200])
def test_any_value_is_read_back_from_the_log_by_this_platform_and_by_delta_rs(tmp_path: Path, value: str) -> None:
    store = append_texts(tmp_path, ["m"], region=value)

    handle = open_table(store.location, TABLE)
    [file] = live_files(handle)
    assert file.partition["region"] == value
    assert (tmp_path / TABLE / file.relative_path).is_file()
    ours = dataset(store.location, TABLE, schema_of(handle), [file]).to_table(columns=["region"])
    assert ours["region"].to_pylist() == [value]
    assert handle.to_pyarrow_table()["region"].to_pylist() == [value]


@pytest.mark.parametrize("value", VALUES)
def test_readers_that_take_values_from_paths_find_them(tmp_path: Path, value: str) -> None:
    append_texts(tmp_path, ["m"], region=value)

    files = f"{tmp_path}/{TABLE}/*/*/*.parquet"
    found = duckdb.connect().execute(f"SELECT region FROM read_parquet('{files}', hive_partitioning=true)").fetchall()  # noqa: S608
    assert found == [(value,)]


@pytest.mark.parametrize("value", VALUES)
def test_a_file_is_the_one_that_its_manifest_names(tmp_path: Path, value: str) -> None:
    store = append_texts(tmp_path, ["m"], region=value)

    log = TableLog.read(store, TABLE)
    [file] = log.live.values()
    assert list(file_problems({file.path: ("query-0/0", 1)}, log)) == []
    assert unquote(log.adds[file.path]["path"]) == file.path
    assert store.get(f"{TABLE}/{file.path}") is not None


def test_a_file_with_an_older_path_is_replaced_by_one_whose_path_names_each_column(tmp_path: Path) -> None:
    store = append_texts(tmp_path, ["m"], region="a/b")
    [old] = live_files(open_table(store.location, TABLE))
    rows = dataset(store.location, TABLE, schema_of(open_table(store.location, TABLE)), [old]).to_table(["gamer_id"])
    with maintenance_lease(store, TABLE):
        new = write_replacement(store, TABLE, old, rows)

    assert new.path.startswith("event_date=2026-01-01/region=a%2Fb/")
    assert store.get(f"{TABLE}/{new.path}") is not None
