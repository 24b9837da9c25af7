"""Measures concurrent idempotent commits to many tables; their files are written before."""

import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import DataFile, encode_parquet, new_file_name, write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.layers.silver import COMMON_SCHEMA, EVENT_DATE, UNIQUE_COLUMNS
from gamelake.model.naming import game_table
from gamelake.objects.store import Location, Store

TABLES = 32
_THREADS = 8
_WARM_UP, _REPETITIONS = 10, 50
_ROWS = 100


def commit_seconds(directory: Path) -> tuple[float, ...]:
    """Seconds of each repetition to commit one file to every table."""
    location = Location(uri=directory.resolve().as_uri())
    entries = SmallFiles(location, game_tables(TABLES))
    app_id = str(uuid.uuid4())
    seconds = []
    with DeltaTables(location) as tables, ThreadPoolExecutor(_THREADS) as pool:
        for version in range(_WARM_UP + _REPETITIONS):
            batch, transaction = entries.next(), BatchTransaction(app_id, version)
            started = time.perf_counter()
            list(pool.map(lambda entry: tables.append(entry, transaction), batch))  # noqa: B023 # done before the next
            seconds.append(time.perf_counter() - started)
    return tuple(round(each, 4) for each in seconds[_WARM_UP:])


def append(
    store: Store, table: str, parts: Sequence[tuple[pa.Table, str | None]], partition_by: str = EVENT_DATE
) -> None:
    """Append rows in one commit.

    Args:
        store: the lakehouse.
        table: its path.
        parts: the rows of each file, in Delta types and without the partition column, with their day; None for all
            files of a table without partitions.
        partition_by: the column of the day.
    """
    files, days = list[DataFile](), [day for _, day in parts if day is not None]
    for rows, day in parts:
        files.append(write_rows(store, table, rows, {partition_by: day} if days else {}, UNIQUE_COLUMNS))
    by = (partition_by,) if days else ()
    schema = delta_schema_json(pa.schema([*parts[0][0].schema, *(pa.field(name, pa.date32()) for name in by)]))
    entry = TableFiles(table=table, partition_by=by, schema=schema, files=tuple(files))
    with DeltaTables(store.location) as tables:
        tables.append(entry, BatchTransaction(str(uuid.uuid4()), 0))


def game_tables(count: int, rows: int = _ROWS) -> dict[str, int]:
    """Return a number of tables of games, and the rows of a file of each."""
    return {game_table(f"game_{number:03d}"): rows for number in range(1, count + 1)}


class SmallFiles:
    """Writes one small file for each table, as a batch does; `rows` are those of a file, by table."""

    def __init__(self, location: Location, rows: Mapping[str, int]) -> None:
        self._store = Store(location)
        self._rows = rows
        self._encoded = {count: _encoded(count) for count in set(rows.values())}
        self._schema = delta_schema_json(COMMON_SCHEMA.append(pa.field(EVENT_DATE, pa.date32())))

    def next(self, day: date | None = None) -> Sequence[TableFiles]:
        """Write the files of the next batch, in the partition of a day; the default is today."""
        wanted = (day or datetime.now(UTC).date()).isoformat()
        with ThreadPoolExecutor(self._store.at_once) as pool:
            return list(pool.map(lambda item: self._entry(item[0], item[1], wanted), self._rows.items()))

    def _entry(self, table: str, rows: int, day: str) -> TableFiles:
        path = new_file_name(f"{EVENT_DATE}={day}")
        content, statistics = self._encoded[rows]
        self._store.put(f"{table}/{path}", content)
        file = DataFile(path=path, size=len(content), rows=rows, partition={EVENT_DATE: day}, statistics=statistics)
        return TableFiles(table=table, partition_by=(EVENT_DATE,), schema=self._schema, files=(file,))


def _encoded(rows: int) -> tuple[bytes, str]:
    """Write a Parquet file with a number of rows, and return its statistics."""
    columns = [pa.nulls(rows, field.type) for field in COMMON_SCHEMA]
    content, statistics = encode_parquet(pa.Table.from_arrays(columns, schema=COMMON_SCHEMA), UNIQUE_COLUMNS)
    return content.to_pybytes(), statistics
