"""Batches as the fan-out hands them to tables: files written first, then committed."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import DataFile, write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.objects.store import Location, Store

TABLE = "silver/kart_rumble_events"
DAY = "event_date"


def a_location(folder: Path) -> Location:
    return Location(uri=folder.as_uri())


def tables_in(folder: Path) -> DeltaTables:
    return DeltaTables(a_location(folder))


def some_rows(first: int, count: int = 3) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"number": pa.array(numbers, pa.int64()), "name": [f"player {number}" for number in numbers]})


def a_file(folder: Path, rows: pa.Table, day: str = "2026-01-01", table: str = TABLE) -> DataFile:
    """Write rows as a data file of a table partitioned by day."""
    return write_rows(Store(a_location(folder)), table, rows, {DAY: day})


def an_entry(schema: pa.Schema, files: Sequence[DataFile], table: str = TABLE) -> TableFiles:
    """What a batch adds to a table whose columns are then these."""
    columns = pa.schema([*schema, pa.field(DAY, pa.date32())])
    return TableFiles(table=table, partition_by=(DAY,), schema=delta_schema_json(columns), files=tuple(files))


def an_append(folder: Path, rows: pa.Table, day: str = "2026-01-01") -> TableFiles:
    """One batch of one file."""
    return an_entry(rows.schema, [a_file(folder, rows, day)])
