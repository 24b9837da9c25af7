"""Measures concurrent idempotent commits to many tables; their files are written before."""

import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from gamelake.layers.silver import COMMON_SCHEMA, EVENT_DATE, UNIQUE_COLUMNS
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
    entries = SmallFiles(location, TABLES)
    app_id = str(uuid.uuid4())
    seconds = []
    with DeltaTables(location) as tables, ThreadPoolExecutor(_THREADS) as pool:
        for version in range(_WARM_UP + _REPETITIONS):
            batch, transaction = entries.next(), BatchTransaction(app_id, version)
            started = time.perf_counter()
            list(pool.map(lambda entry: tables.append(entry, transaction), batch))  # noqa: B023 # done before the next
            seconds.append(time.perf_counter() - started)
    return tuple(round(each, 4) for each in seconds[_WARM_UP:])


class SmallFiles:
    """Writes one small file for each table, as a batch does."""

    def __init__(self, location: Location, tables: int) -> None:
        self._store = Store(location)
        self._tables = tables
        self._day = datetime.now(UTC).date().isoformat()
        columns = [pa.nulls(_ROWS, field.type) for field in COMMON_SCHEMA]
        rows = pa.Table.from_arrays(columns, schema=COMMON_SCHEMA)
        self._content, self._statistics = encode_parquet(rows, UNIQUE_COLUMNS)
        self._schema = delta_schema_json(COMMON_SCHEMA.append(pa.field(EVENT_DATE, pa.date32())))

    def next(self) -> Sequence[TableFiles]:
        """Write the files of the next batch."""
        return [self._entry(f"silver/game_{number:03d}_events") for number in range(1, self._tables + 1)]

    def _entry(self, table: str) -> TableFiles:
        path = new_file_name(f"{EVENT_DATE}={self._day}")
        self._store.put(f"{table}/{path}", self._content.to_pybytes())
        file = DataFile(
            path=path,
            size=self._content.size,
            rows=_ROWS,
            partition={EVENT_DATE: self._day},
            statistics=self._statistics,
        )
        return TableFiles(table=table, partition_by=(EVENT_DATE,), schema=self._schema, files=(file,))
