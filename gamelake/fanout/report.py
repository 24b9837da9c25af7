"""What a task tells the driver: the files it wrote, the offsets it took, what it set aside."""

from collections.abc import Iterable

import msgspec
import pyarrow as pa

from gamelake.lake.datafile import DataFile
from gamelake.lake.manifest import EventsFile, Judged, OffsetRange

REPORT_SCHEMA = "report binary"


class WrittenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file, the table that it is for, and how that table is laid out.

    `columns` is the Arrow schema of the file and its partition columns, as an IPC message; `schema_ids` are those of
    the schemas that the chunk's rows of the table came in, ascending.
    """

    table: str
    partition_by: tuple[str, ...]
    columns: bytes
    schema_ids: tuple[int, ...]
    file: DataFile

    @property
    def newest_schema(self) -> int:
        """The highest id, 0 if the rows were not decoded."""
        return max(self.schema_ids, default=0)


class TaskReport(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk of one task; `duplicates` by game, `events` is the file of those that are none."""

    task: str
    files: tuple[WrittenFile, ...]
    offsets: tuple[OffsetRange, ...]
    dead_letters: dict[str, int]
    duplicates: dict[str, int] = {}
    events: EventsFile | None = None
    judged: Judged = Judged()


def pack(report: TaskReport) -> pa.RecordBatch:
    """A report as the row that a task yields."""
    return pa.RecordBatch.from_arrays([pa.array([msgspec.msgpack.encode(report)], pa.binary())], names=["report"])


def unpack(rows: Iterable[bytes]) -> list[TaskReport]:
    """The reports of a job."""
    return [msgspec.msgpack.decode(row, type=TaskReport) for row in rows]


def joined_offsets(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """One range per partition, from the ranges that several tasks and chunks took."""
    by_partition: dict[int, OffsetRange] = {}
    for taken in ranges:
        known = by_partition.get(taken.partition, taken)
        by_partition[taken.partition] = OffsetRange(
            partition=taken.partition,
            first=min(known.first, taken.first),
            last=max(known.last, taken.last),
            records=taken.records if known is taken else known.records + taken.records,
        )
    return tuple(by_partition[partition] for partition in sorted(by_partition))
