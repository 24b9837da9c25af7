"""The rows of many small files at once, which is nearly all that packing them takes.

Arrow sets a decompressor up for each column of each file; DuckDB reads a list of files some three times as fast. Where
it has no such value, Arrow reads after all.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

import duckdb
import pyarrow as pa

from gamelake.lake.datasets import dataset
from gamelake.lake.file_entries import FileEntry
from gamelake.lake.store import Store

_FETCHES_AT_ONCE = 16


def rows_of(store: Store, table: str, columns: pa.Schema, files: Sequence[FileEntry]) -> pa.Table:
    """The rows of files of one partition, in the table's columns but those that it is partitioned by.

    Raises:
        FileNotFoundError: a file is gone.
    """
    wanted = pa.schema([field for field in columns if field.name not in files[0].partition])
    with _on_disk(store, table, files) as paths, suppress(duckdb.Error, pa.ArrowException):
        return _in(wanted, _read(paths))
    # A text that is no UTF-8, a moment beyond DuckDB's calendar; or a file that is gone, as Arrow will say.
    return dataset(store.location, table, columns, files).to_table(columns=wanted.names)


def _read(paths: Sequence[str]) -> pa.Table:
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        question = "SELECT * FROM read_parquet($paths, union_by_name = true, hive_partitioning = false)"
        return connection.sql(question, params={"paths": list(paths)}).to_arrow_table()


def _in(wanted: pa.Schema, rows: pa.Table) -> pa.Table:
    """Rows in a table's columns; older files lack the newer ones."""
    there = set(rows.column_names)
    found = [
        rows.column(field.name).cast(field.type) if field.name in there else pa.nulls(rows.num_rows, field.type)
        for field in wanted
    ]
    return pa.Table.from_arrays(found, schema=wanted)


@contextmanager
def _on_disk(store: Store, table: str, files: Sequence[FileEntry]) -> Iterator[list[str]]:
    """The files as ones of this machine: where they are, or fetched many at a time."""
    parts = urlsplit(store.location.child(table))
    if parts.scheme == "file":
        yield [str(Path(unquote(parts.path)) / file.place) for file in files]
        return
    with TemporaryDirectory(prefix="gamelake-packing-") as folder, ThreadPoolExecutor(_FETCHES_AT_ONCE) as pool:
        paths = [f"{folder}/{number}.parquet" for number in range(len(files))]

        def fetch(path: str, file: FileEntry) -> None:
            Path(path).write_bytes(store.get(f"{table}/{file.place}") or b"")

        list(pool.map(fetch, paths, files))
        yield paths
