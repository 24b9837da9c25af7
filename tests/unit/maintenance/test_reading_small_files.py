"""Many small files are read as Arrow reads them, whatever their content."""

import tempfile
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given

from gamelake.delta.appends import schema_of
from gamelake.delta.data_files import encode_parquet
from gamelake.delta.log.codec import live_files
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.maintenance import compaction
from gamelake.maintenance.compaction import rows_of
from gamelake.objects.store import Store
from gamelake.scans.datasets import dataset
from tests.support.player_tables import SILVER, append_rows, store_in
from tests.unit.delta.random_tables import tables
from tests.unit.properties import examples

NAME = SILVER.name


def read(store: Store) -> pa.Table:
    handle = open_table(store.location, NAME)
    return rows_of(store, NAME, schema_of(handle), live_files(handle))


def by_arrow(store: Store) -> pa.Table:
    handle = open_table(store.location, NAME)
    return dataset(store.location, NAME, schema_of(handle), live_files(handle)).to_table().drop_columns(["event_date"])


def same(one: pa.Table, other: pa.Table) -> bool:
    """Return True if the files that hold them are the same to the last byte."""
    files = [encode_parquet(rows.combine_chunks(), ())[0].to_pybytes() for rows in (one, other)]
    return bool(one.schema == other.schema and files[0] == files[1])


@given(rows=tables())
@examples(60)
def test_what_is_read_is_what_arrow_reads(rows: pa.Table) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = store_in(Path(folder))
        with DeltaTables(store.location) as opened:
            for batch in range(2):
                append_rows(opened, store, batch, rows)

        assert same(read(store), by_arrow(store))


def test_plain_rows_are_read_without_arrow(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with DeltaTables(store.location) as opened:
        append_rows(opened, store, 0, pa.table({"gamer_id": ["a"], "level": [1]}))
        append_rows(opened, store, 1, pa.table({"gamer_id": ["b"], "level": [2], "Tags": [["x"]]}))

    expected = by_arrow(store)
    with patch.object(compaction, "dataset", side_effect=AssertionError):
        assert same(read(store), expected)


def test_a_file_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with DeltaTables(store.location) as opened:
        append_rows(opened, store, 0, pa.table({"gamer_id": ["a"]}))
    [file] = live_files(open_table(store.location, NAME))
    store.delete(f"{NAME}/{file.relative_path}")

    with pytest.raises(FileNotFoundError):
        read(store)
