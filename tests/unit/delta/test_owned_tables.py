"""A table that one program writes: files replace others in one commit, which no other writer's commit is lost to."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.log.codec import FileEntry
from gamelake.delta.owned_tables import OwnedTable, Replacement
from gamelake.objects.store import Location, Store

ROOT = Path(__file__).parents[3]
SCHEMA = pa.schema([("day", pa.date32()), ("count", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> OwnedTable:
    store = Store(Location(uri=f"file://{tmp_path}"))
    return OwnedTable(store=store, path="gold/counts", schema=SCHEMA, partition_by=("day",))


def replace(table: OwnedTable, handle: DeltaTable | None, day: str, count: int) -> bool:
    """Put one row in the place of a day's rows."""

    def is_of_day(file: FileEntry) -> bool:
        return file.partition["day"] == day

    file = table.write(pa.table({"count": [count]}), {"day": day})
    removed = table.files(handle, is_of_day)
    return table.commit(handle, Replacement(files=[file], removed=removed, transaction=BatchTransaction("test", count)))


def counts(table: OwnedTable) -> dict[str, int]:
    handle = table.open()
    assert handle is not None
    folder = Path(handle.table_uri.removeprefix("file://"))
    return {
        str(file.partition["day"]): pq.read_table(folder / file.path, partitioning=None)["count"][0].as_py()
        for file in table.files(handle, lambda _: True)
    }


def test_a_table_is_created_by_its_first_commit_and_keeps_its_id(table: OwnedTable) -> None:
    assert table.open() is None

    assert replace(table, None, "2026-01-01", 1)
    created = table.open()
    assert created is not None
    assert replace(table, created, "2026-01-02", 2)

    newest = table.open()
    assert newest is not None
    assert newest.metadata().id == created.metadata().id
    assert newest.metadata().partition_columns == ["day"]


def test_a_replacement_touches_no_other_partition(table: OwnedTable) -> None:
    replace(table, None, "2026-01-01", 1)
    replace(table, table.open(), "2026-01-02", 2)
    replace(table, table.open(), "2026-01-01", 3)

    assert counts(table) == {"2026-01-01": 3, "2026-01-02": 2}


def test_a_commit_of_a_version_that_another_writer_has_taken_changes_nothing(table: OwnedTable) -> None:
    replace(table, None, "2026-01-01", 1)
    stale = table.open()
    replace(table, table.open(), "2026-01-01", 2)

    assert not replace(table, stale, "2026-01-01", 3)
    assert not replace(table, None, "2026-01-01", 4)
    assert counts(table) == {"2026-01-01": 2}


def test_log_entries_are_put_in_one_place() -> None:
    sources = [path for folder in ("gamelake", "jobs", "services", "tools") for path in (ROOT / folder).rglob("*.py")]

    puts = [str(path.relative_to(ROOT)) for path in sources if re.search(r"put_new\(\s*entry_path", path.read_text())]

    assert puts == ["gamelake/delta/commits.py"]
