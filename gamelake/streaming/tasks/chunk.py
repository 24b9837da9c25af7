"""Collects the rows of a task by table and day, and writes them as Parquet files."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from threading import BoundedSemaphore
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.contract.games import GamesContract, PartitionColumn
from gamelake.delta.data_files import DataFile, encode_parquet, new_file_name, partition_folder
from gamelake.layers.bronze import BRONZE_PARTITION
from gamelake.layers.routing import layouts
from gamelake.layers.silver import UNIQUE_COLUMNS
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, QUARANTINE, RELEASED, REPLAYED
from gamelake.objects.store import Store
from gamelake.quality.quarantine import LONG_COLUMNS
from gamelake.streaming.plan import WrittenFile

_EPOCH = date(1970, 1, 1)
_BRONZE_UNIQUE = frozenset({"value", "key"})


@dataclass(frozen=True, slots=True)
class TableDay:
    """A table and a day, whose rows are written to one folder.

    Attributes:
        table: the name of the table.
        day: the number of days since 1970, in UTC.
    """

    table: str
    day: int

    @property
    def date(self) -> str:
        """The day as a partition value of Delta, such as 2026-01-31."""
        return (_EPOCH + timedelta(days=self.day)).isoformat()


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The layout of a table's files.

    Attributes:
        partition_by: the partition columns, the day first.
        unique: the columns with mostly distinct values, which are written without a dictionary.
    """

    partition_by: tuple[str, ...]
    unique: frozenset[str]

    @property
    def extra(self) -> tuple[str, ...]:
        """The partition columns after the day."""
        return self.partition_by[1:]


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of a table and day.

    Attributes:
        target: the table and the day.
        batches: the rows, without the column of the day; the batches may have different columns.
        schema_ids: the ids of the schemas that the chunk's rows of this table have, ascending.
    """

    target: TableDay
    batches: Sequence[pa.RecordBatch]
    schema_ids: tuple[int, ...]

    def table(self) -> pa.Table:
        """Return all rows in order, with the columns of all batches; a value that a batch lacks is null."""
        tables = [pa.Table.from_batches([rows]) for rows in self.batches]
        return pa.concat_tables(tables, promote_options="permissive")


class Uploads:
    """Writes files in the background until the end of the block: writing needs more threads than encoding.

    Raises:
        Exception: the first error of a write, at the next `put` or at the end of the block. No write begins after it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(store.at_once, thread_name_prefix="upload")
        # Bounds the memory: an encoded file stays there until it is written.
        self._free = BoundedSemaphore(2 * store.at_once)
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        """Return the uploads."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until all files are written; after an error in the block, cancel the writes that have not begun."""
        self._pool.shutdown(cancel_futures=error is not None)
        if error is None and self._error is not None:
            raise self._error

    def put(self, path: str, content: pa.Buffer) -> None:
        """Queue a file for writing; block while the queue is full.

        Args:
            path: of the file on the store.
            content: bytes of the file.
        """
        self._free.acquire()
        if self._error is not None:
            self._free.release()
            raise self._error
        self._pool.submit(self._write, path, content)

    def _write(self, path: str, content: pa.Buffer) -> None:
        try:
            if self._error is None:
                self._store.put(path, content.to_pybytes())
        except BaseException as error:  # raised in the thread that waits for the files
            self._error = self._error or error
        finally:
            self._free.release()


class ChunkWriter:
    """Collects rows and writes one file per table, day and partition value, several files at a time.

    A file has its columns in the order of the table, because the first ones have statistics: delta-rs' data set skips a
    file without the bounds of a column that the table's property promises (docs/upstream/missing-bounds.md).
    """

    def __init__(
        self, store: Store, contract: GamesContract, threads: int, schemas: Mapping[str, pa.Schema] | None = None
    ) -> None:
        """Begin without rows.

        Args:
            store: the lakehouse.
            contract: has the layouts of the games' tables.
            threads: the number of files that are encoded at a time.
            schemas: the columns of existing tables, by table name; a file has them first, in their order.
        """
        self._store = store
        self._schemas = schemas or {}
        self._games = layouts(contract)
        self._threads = threads
        self._rows: defaultdict[TableDay, list[pa.RecordBatch]] = defaultdict(list)
        self._schema_ids: defaultdict[str, set[int]] = defaultdict(set)

    def add(self, target: TableDay, rows: pa.RecordBatch, *schema_ids: int) -> None:
        """Keep rows until the chunk is written.

        Args:
            target: the table and the day of all rows.
            rows: in the columns of their table, without the column of the day.
            schema_ids: the ids of the schemas of the rows.
        """
        if len(rows):
            self._rows[target].append(rows)
            self._schema_ids[target.table].update(schema_ids)

    def take_small(self, most_bytes: int) -> list[TableRows]:
        """Remove and return the rows of each table and day that has at most `most_bytes` bytes in memory."""
        sizes = {target: sum(rows.nbytes for rows in batches) for target, batches in self._rows.items()}
        return [self._rows_of(target, self._rows.pop(target)) for target, size in sizes.items() if size <= most_bytes]

    def write(self) -> tuple[WrittenFile, ...]:
        """Write all kept rows, largest table and day first, and drop the rows.

        Returns:
            The files, which no commit has yet.
        """
        with Uploads(self._store) as uploads, ThreadPoolExecutor(self._threads) as pool:
            # Largest first: a big file started last would leave the other threads idle.
            targets = sorted(self._rows.items(), key=lambda item: -sum(len(rows) for rows in item[1]))
            written = list(pool.map(lambda item: self._write_target(self._rows_of(*item), uploads), targets))
        self._rows.clear()
        self._schema_ids.clear()
        return tuple(file for files in written for file in files)

    def layout(self, table: str) -> TableLayout:
        """Return the layout of a table's files."""
        if table in (BRONZE_EVENTS, DEAD_LETTERS, REPLAYED, RELEASED):
            return TableLayout((BRONZE_PARTITION,), _BRONZE_UNIQUE)
        if table == QUARANTINE:
            return TableLayout((PartitionColumn.EVENT_DATE.value,), UNIQUE_COLUMNS | LONG_COLUMNS)
        game = self._games.get(table)
        extra = () if game is None else tuple(column.value for column in game.partition_by[1:])
        return TableLayout((PartitionColumn.EVENT_DATE.value, *extra), UNIQUE_COLUMNS)

    def _rows_of(self, target: TableDay, batches: Sequence[pa.RecordBatch]) -> TableRows:
        return TableRows(target, batches, tuple(sorted(self._schema_ids[target.table])))

    def _write_target(self, rows: TableRows, uploads: Uploads) -> list[WrittenFile]:
        layout = self.layout(rows.target.table)
        ordered = _in_order_of(self._schemas.get(rows.target.table), rows.table())
        return [self._write_file(rows, values, part, uploads) for values, part in _split(ordered, layout.extra)]

    def _write_file(
        self, written: TableRows, values: dict[str, str | None], rows: pa.Table, uploads: Uploads
    ) -> WrittenFile:
        target, layout = written.target, self.layout(written.target.table)
        content, statistics = encode_parquet(rows, layout.unique)
        partition = {layout.partition_by[0]: target.date, **values}
        path = new_file_name(partition_folder(partition))
        uploads.put(f"{target.table}/{path}", content)
        file = DataFile(path=path, size=content.size, rows=rows.num_rows, partition=partition, statistics=statistics)
        return WrittenFile(
            table=target.table,
            partition_by=layout.partition_by,
            columns=_with_partitions(rows.schema, layout).serialize().to_pybytes(),
            schema_ids=written.schema_ids,
            file=file,
        )


def _in_order_of(schema: pa.Schema | None, rows: pa.Table) -> pa.Table:
    """Return the same rows, with the columns of a schema first, in its order."""
    if schema is None:
        return rows
    there = frozenset(rows.column_names)
    names = dict.fromkeys(name for name in schema.names if name in there)
    return rows.select([*names, *(name for name in rows.column_names if name not in names)])


def _split(rows: pa.Table, columns: tuple[str, ...]) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
    """Yield the rows by the values of the partition columns after the day, each part without these columns."""
    if not columns:
        yield {}, rows
        return
    name, rest = columns[0], columns[1:]
    if rows.schema.get_field_index(name) < 0:
        rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.string()))
    texts = rows[name].combine_chunks().dictionary_encode()
    codes = pc.fill_null(texts.indices, -1).to_numpy()
    # Sorted once: a filter for each value would read all rows once per value.
    order = np.argsort(codes, kind="stable")
    ordered = rows.drop_columns([name]).take(pa.array(order))
    starts = [0, *(np.flatnonzero(np.diff(codes[order])) + 1).tolist(), len(order)]
    for start, end in pairwise(starts):
        value = texts[int(order[start])].as_py()
        for values, part in _split(ordered.slice(start, end - start), rest):
            yield {name: value, **values}, part


def _with_partitions(schema: pa.Schema, layout: TableLayout) -> pa.Schema:
    day = pa.field(layout.partition_by[0], pa.date32())
    return pa.schema([*schema, day, *(pa.field(name, pa.string()) for name in layout.extra)])
