"""Texts of every plane of Unicode are found again: bounds and partition values mean to readers what was written."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.objects.store import Location, Store

TABLE = "silver/archery_events"
# A few characters of the planes in use; the bit patterns of planes 1, 2, 3, 14, 15 and 16 differ.
CHARACTERS = ("z", "é", "野", "\uffff", "😀", "𠮷", "𰻝", "\U000e0101", "\U000f0000", "\U00100000", "\U0010ffff")


def append_texts(folder: Path, texts: list[str], region: str, batch: int = 0) -> Store:
    store = Store(Location(uri=folder.as_uri()))
    file = write_rows(store, TABLE, pa.table({"gamer_id": texts}), {"event_date": "2026-01-01", "region": region})
    columns = pa.schema({"gamer_id": pa.string(), "event_date": pa.date32(), "region": pa.string()})
    partition_by = ("event_date", "region")
    entry = TableFiles(table=TABLE, partition_by=partition_by, schema=delta_schema_json(columns), files=(file,))
    with DeltaTables(store.location) as tables:
        tables.append(entry, BatchTransaction("query-0", batch))
    return store


def rows_where(store: Store, column: str, text: str) -> int:
    """Rows by a reader that skips files by bounds and partition values."""
    table = open_table(store.location, TABLE).to_pyarrow_dataset()
    query = f"SELECT count(*) FROM events WHERE {column} = ?"  # noqa: S608
    found = duckdb.connect().register("events", table).execute(query, [text])
    return int(found.fetchall()[0][0])


@pytest.mark.parametrize("character", CHARACTERS)
def test_a_text_of_any_plane_is_found_by_its_bounds_and_its_partition(tmp_path: Path, character: str) -> None:
    text = f"{character}野"
    store = append_texts(tmp_path, [text], region=text)

    assert rows_where(store, "gamer_id", text) == 1
    assert rows_where(store, "region", text) == 1


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize("place", [0, 31, 32])
@pytest.mark.parametrize("character", CHARACTERS)
def test_a_long_text_is_found_by_its_shortened_bounds(
    tmp_path: Path, character: str, place: int, checkpointed: bool
) -> None:
    text = "m" * place + character + "m" * 40
    store = append_texts(tmp_path, [text], region="eu")
    if checkpointed:
        open_table(store.location, TABLE).create_checkpoint()

    assert rows_where(store, "gamer_id", text) == 1
