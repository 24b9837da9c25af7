"""The data between driver and tasks of a batch: the plan that goes in, the reports that come back."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import msgspec
import pyarrow as pa

from gamelake.model.games import GamesContract
from gamelake.model.naming import game_of
from gamelake.quality.checking import NO_CHECKED_RULES, CheckedRules
from gamelake.schemas.limits import SchemaLimits
from gamelake.schemas.schema_cache import SchemaWait
from gamelake.storage.data_files import DataFile
from gamelake.storage.manifests import EventsFile, Judged, OffsetRange
from gamelake.storage.store import Location
from gamelake.streaming.kafka_reader import ReadFailure

MIB = 2**20

REPORT_SCHEMA = "report binary"
NO_CLOCK = 2**63 - 1
# 16 to 20 bytes each, in every worker process.
EVENTS_IN_MEMORY = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """How much a task collects before it writes files: more gives fewer files, less needs less memory."""

    records: int = 500_000
    value_bytes: int = 256 * MIB


@dataclass(frozen=True, slots=True)
class KnownFile:
    """Identities of ingested events of one Kafka partition, in a file.

    Attributes:
        start: the first byte in the file.
        events: how many; 16 bytes each.
        newest: the Kafka timestamp of the newest event, in seconds since 1970.
        may_expire: whether its stream may delete it before a task reads it, as its window passes.
    """

    path: str
    start: int
    events: int
    newest: int
    may_expire: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupPlan:
    """What a task needs to find duplicates.

    Attributes:
        folder: where the task writes the identities of the events that it accepts.
        seed: of the identities.
        clock: the driver's time, in microseconds since 1970; an event with a later Kafka timestamp counts as received
            then.
        known: the identity files of the window, by Kafka partition.
        in_memory: how many identities a worker process may keep in memory; the others are in scratch files.
    """

    folder: str
    batch_id: int
    seed: str
    window_seconds: int
    known: Mapping[int, tuple[KnownFile, ...]] = field(default_factory=dict)
    clock: int = NO_CLOCK
    in_memory: int = EVENTS_IN_MEMORY


@dataclass(frozen=True, slots=True)
class OtherSourceEvents:
    """Identity files of events that another stream has ingested, and the seed of these identities."""

    seed: str
    files: tuple[KnownFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """Everything that a task needs in addition to its records; pickled into the job.

    Attributes:
        clock: the driver's time when it planned the batch, in microseconds since 1970: the same in every task and every
            attempt of a task. No event has arrived later.
        shuffle: the folder that a task writes rows of small files to; "" if it writes all files itself.
    """

    lakehouse: Location
    registry_url: str
    topic: str
    contract: GamesContract
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)
    unlisted_tables: frozenset[str] = frozenset()
    schema_wait: SchemaWait = field(default_factory=SchemaWait)
    schema_limits: SchemaLimits = field(default_factory=SchemaLimits)
    chunk: ChunkLimits = field(default_factory=ChunkLimits)
    writer_threads: int = 2
    dedup: DedupPlan | None = None
    rules: CheckedRules = NO_CHECKED_RULES
    other_sources: tuple[OtherSourceEvents, ...] = ()
    clock: int = NO_CLOCK
    shuffle: str = ""

    def for_tables(self, schemas: Mapping[str, pa.Schema]) -> Self:
        """The same plan with the columns of the existing tables, by table name."""
        games = {table: schema for table, schema in schemas.items() if game_of(table)}
        listed = {game.table for game in self.contract.games}
        return replace(self, schemas=games, unlisted_tables=frozenset(games.keys() - listed))


def clock_now() -> int:
    """The present time as the clock of a plan."""
    return time.time_ns() // 1000


class WrittenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A data file and the table that it belongs to.

    Attributes:
        columns: the Arrow schema of the file and its partition columns, as an IPC message.
        schema_ids: of the rows of the table in this chunk, ascending.
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


class ShuffleFile(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of many tables, by groups of tables; `ends` has the end of each group in the object, in bytes."""

    path: str
    ends: tuple[int, ...]

    def range(self, first: int, end: int) -> tuple[int, int]:
        """Where the groups from `first` to before `end` are: the first byte, and how many."""
        start = self.ends[first - 1] if first else 0
        return start, self.ends[end - 1] - start


class TaskReport(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk of one task; `duplicates` are by game, `events` is the identity file of the accepted events.

    Attributes:
        shuffled: the rows that are not in `files`, for other tasks to write.
        failure: why the task could not read all its records; without files then.
    """

    task: str
    files: tuple[WrittenFile, ...]
    offsets: tuple[OffsetRange, ...]
    dead_letters: dict[str, int]
    duplicates: dict[str, int] = {}
    events: EventsFile | None = None
    judged: Judged = Judged()
    shuffled: ShuffleFile | None = None
    failure: ReadFailure | None = None


def encode_report(report: TaskReport) -> pa.RecordBatch:
    """A report as a batch of one row with the column `report` (binary, MessagePack)."""
    return pa.RecordBatch.from_arrays([pa.array([msgspec.msgpack.encode(report)], pa.binary())], names=["report"])


def decode_reports(rows: Iterable[bytes]) -> list[TaskReport]:
    """The reports of a job, from the values of the column `report`."""
    return [msgspec.msgpack.decode(row, type=TaskReport) for row in rows]


def merge_offsets(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """One range per partition, in their order, from the ranges of several tasks and chunks."""
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
