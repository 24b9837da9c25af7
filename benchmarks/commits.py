"""Measures concurrent idempotent commits to many tables; their files are written before."""

import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa

from gamelake.layers.silver import COMMON_SCHEMA, EVENT_DATE, UNIQUE_COLUMNS
from gamelake.model.naming import game_table
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.data_files import DataFile, encode_parquet, new_file_name
from gamelake.storage.manifests import TableFiles
from gamelake.storage.store import Location, Store
from gamelake.storage.tables import DeltaTables, delta_schema_json

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


def game_tables(count: int, rows: int = _ROWS) -> dict[str, int]:
    """So many tables of games, and the rows of a file of each."""
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
    """A Parquet file of so many rows, and its statistics."""
    columns = [pa.nulls(rows, field.type) for field in COMMON_SCHEMA]
    content, statistics = encode_parquet(pa.Table.from_arrays(columns, schema=COMMON_SCHEMA), UNIQUE_COLUMNS)
    return content.to_pybytes(), statistics
