"""Merges the small files of a batch of many tasks, so that the number of files does not grow with that of tasks.

Each task of a batch has rows of many tables. If each task wrote a file for each table, a batch would have tasks x
tables files. So a task writes only large files itself, and all other rows to one object, sorted by table. Then merging
tasks each read the rows of some tables from all of these objects, and write one file for each table and day.

Spark's own shuffle is not suitable. A task that Spark runs again may report other rows, for example if a schema was
unknown in its first attempt. Then one reader could get rows of the first attempt, and another those of the second.
Here the driver passes the objects of exactly one attempt to all readers.
"""

import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import msgspec
import pyarrow as pa
from obstore.exceptions import BaseError
from pyspark.sql import SparkSession

from gamelake.delta.columns import conflicts, merged
from gamelake.model.errors import StoreError
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store
from gamelake.streaming.plan import MIB, ShuffleFile, TaskPlan, TaskReport, WrittenFile
from gamelake.streaming.tasks.chunk import ChunkWriter, TableDay, TableRows

log = event_logger(__name__)

# Up to this many tasks each write their own files: merging would cost more than it saves.
MOST_FILES = 3
# A task writes the rows of a table and day itself if they have more bytes in memory.
SMALL_BYTES = 4 * MIB
# The compressed bytes that a merging task reads, and the bytes in memory from which it writes files.
_SHARE_BYTES, _MEMORY_BYTES = 16 * MIB, 128 * MIB
# Merging tasks read groups of tables; the task's report has the end of each group in its shuffle file.
_GROUPS = 256
_FILES_AT_ONCE = 64
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


class _FrameHead(msgspec.Struct, frozen=True, array_like=True):
    """The header of an Arrow stream in a shuffle file.

    Attributes:
        table: the name of the table.
        day: the number of days since 1970, in UTC.
        schema_ids: the ids of the schemas of the rows, ascending.
        size: of the Arrow stream that follows, in bytes.
    """

    table: str
    day: int
    schema_ids: tuple[int, ...]
    size: int


def write_shuffle_file(store: Store, folder: str, rows: Sequence[TableRows]) -> ShuffleFile | None:
    """Write the rows of many tables to one object; return None if there are no rows.

    Args:
        store: the lakehouse.
        folder: of the shuffle files.
        rows: of any tables and days, in any order.
    """
    if not rows:
        return None
    content, ends = pa.BufferOutputStream(), [0] * _GROUPS
    for each in sorted(rows, key=lambda each: (_group(each.target.table), each.target.table, each.target.day)):
        body = _stream(each.table())
        head = msgspec.msgpack.encode(_FrameHead(each.target.table, each.target.day, each.schema_ids, body.size))
        for part in (len(head).to_bytes(4, "big"), head, body):
            content.write(part)
        ends[_group(each.target.table)] = content.tell()
    for group in range(1, _GROUPS):
        ends[group] = max(ends[group], ends[group - 1])
    path = f"{folder}/{uuid.uuid4()}"
    store.put(path, content.getvalue().to_pybytes())
    return ShuffleFile(path=path, ends=tuple(ends))


def _group(table: str) -> int:
    # Python's own hash differs from process to process.
    return zlib.crc32(table.encode()) % _GROUPS


def _stream(rows: pa.Table) -> pa.Buffer:
    target = pa.BufferOutputStream()
    with pa.ipc.new_stream(target, rows.schema, options=_COMPRESSED) as writer:
        writer.write_table(rows)
    return target.getvalue()


def read_frames(content: bytes) -> Iterator[TableRows]:
    """Decode the rows in a part of a shuffle file.

    Args:
        content: the bytes of one or more whole groups of tables.

    Yields:
        The rows of each table and day, in the order of the file.
    """
    source = pa.py_buffer(content)
    at = 0
    while at < source.size:
        size = int.from_bytes(content[at : at + 4], "big")
        head = msgspec.msgpack.decode(content[at + 4 : at + 4 + size], type=_FrameHead)
        at += 4 + size
        batches = pa.ipc.open_stream(source.slice(at, head.size)).read_all().to_batches()
        at += head.size
        yield TableRows(TableDay(head.table, head.day), batches, head.schema_ids)


@dataclass(slots=True)
class MergedTables:
    """Collects rows of tables, and merges the columns of each table; rows with conflicting columns stay separate.

    Attributes:
        plan: of the batch.
        store: the lakehouse.
        bytes: the size of the rows in memory.
    """

    plan: TaskPlan
    store: Store
    bytes: int = 0
    _writers: list[tuple[ChunkWriter, dict[str, pa.Schema]]] = field(default_factory=list)

    def add(self, rows: TableRows) -> None:
        """Keep rows until the next `write`."""
        writer = self._writer_for(rows.target.table, rows.batches[0].schema)
        for batch in rows.batches:
            writer.add(rows.target, batch, *rows.schema_ids)
            self.bytes += batch.nbytes

    def _writer_for(self, table: str, schema: pa.Schema) -> ChunkWriter:
        for writer, columns in self._writers:
            known = columns.setdefault(table, schema)
            if not conflicts(known, schema):
                columns[table] = merged(known, schema)
                return writer
        # The driver finds the conflict in the columns of the files, and decides the batch again.
        writer = ChunkWriter(self.store, self.plan.contract, self.plan.writer_threads, self.plan.schemas)
        self._writers.append((writer, {table: schema}))
        return writer

    def write(self) -> list[WrittenFile]:
        """Write a file for each table and day, and drop the rows."""
        files = [file for writer, _ in self._writers for file in writer.write()]
        self._writers.clear()
        self.bytes = 0
        return files


@dataclass(frozen=True, slots=True)
class MergingTask:
    """Merges the rows of groups of tables; Spark maps it over ranges of groups.

    Attributes:
        plan: of the batch.
        files: the shuffle files that the batch's tasks have written.
    """

    plan: TaskPlan
    files: Sequence[ShuffleFile]

    def __call__(self, shares: Iterable[tuple[int, int]]) -> Iterator[bytes]:
        """Yield the written files of each share (MessagePack): of the groups from its first one to before its end."""
        for first, end in shares:
            yield msgspec.msgpack.encode(self._merge(first, end))

    def _merge(self, first: int, end: int) -> list[WrittenFile]:
        store = Store(self.plan.lakehouse)
        rows, files = MergedTables(self.plan, store), list[WrittenFile]()
        ranges = [(file.path, *file.range(first, end)) for file in self.files]
        ranges = [(path, start, length) for path, start, length in ranges if length]
        with ThreadPoolExecutor(store.at_once) as pool:
            for at in range(0, len(ranges), _FILES_AT_ONCE):
                for content in pool.map(lambda each: _read(store, *each), ranges[at : at + _FILES_AT_ONCE]):
                    for each in read_frames(content):
                        rows.add(each)
                        if rows.bytes > _MEMORY_BYTES:
                            files += rows.write()
        return files + rows.write()


def _read(store: Store, path: str, start: int, length: int) -> bytes:
    content = store.get_range(path, start, length)
    if content is None or len(content) != length:
        raise StoreError(
            f"{path} is missing or truncated, though a task of this batch has just written it: check that nothing "
            "deletes files of the lakehouse, and start the job again"
        )
    return content


def merge_shuffled(spark: SparkSession, plan: TaskPlan, reports: Iterable[TaskReport]) -> list[WrittenFile]:
    """Run the merging tasks of a batch, then delete the batch's shuffle files.

    Args:
        spark: the session of the query.
        plan: of the batch.
        reports: of all tasks of the batch.

    Returns:
        The files that the merging tasks have written.
    """
    files = [report.shuffled for report in reports if report.shuffled is not None]
    if not files:
        return []
    ranges, task = shares(files, _SHARE_BYTES), MergingTask(replace(plan, dedup=None, other_sources=()), files)
    encoded = spark.sparkContext.parallelize(ranges, len(ranges)).mapPartitions(task).collect()
    _delete(Store(plan.lakehouse), [file.path for file in files])
    return [file for each in encoded for file in msgspec.msgpack.decode(each, type=list[WrittenFile])]


def shares(files: Sequence[ShuffleFile], most_bytes: int) -> list[tuple[int, int]]:
    """Divide the groups of tables into shares, so that each has at most `most_bytes` bytes, or is one group.

    Args:
        files: all shuffle files of the batch.
        most_bytes: the largest size of a share in all files together.

    Returns:
        The first group of each share, and the group after its last one, in the order of groups; no share is empty.
    """
    found, first = [], 0
    for group in range(1, _GROUPS + 1):
        if group == _GROUPS or sum(file.range(first, group + 1)[1] for file in files) > most_bytes:
            found.append((first, group))
            first = group
    return [each for each in found if any(file.range(*each)[1] for file in files)]


def remove_leftovers(store: Store, folder: str) -> None:
    """Delete the shuffle files of a driver that was killed; no decided batch needs them."""
    _delete(store, store.paths(folder))


def _delete(store: Store, paths: Sequence[str]) -> None:
    try:
        with ThreadPoolExecutor(store.at_once) as pool:
            list(pool.map(store.delete, paths))
    except (BaseError, OSError) as error:
        log.warning("shuffle_files_not_deleted", error=error, action="the next start deletes them")
