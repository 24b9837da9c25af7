"""The data between driver and tasks of a batch: the plan for the tasks, and the reports that the tasks return."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import msgspec
import pyarrow as pa

from gamelake.contract.games import GamesContract
from gamelake.delta.data_files import DataFile
from gamelake.ledger.manifests import EventsFile, Judged, OffsetRange
from gamelake.ledger.skipped_records import SkippedRecords
from gamelake.model.naming import game_of
from gamelake.objects.store import Location
from gamelake.quality.checking import NO_CHECKED_RULES, CheckedRules
from gamelake.schemas.limits import SchemaLimits
from gamelake.schemas.schema_cache import SchemaWait
from gamelake.streaming.kafka.reader import TaskFailure

MIB = 2**20

REPORT_SCHEMA = "report binary"
NO_CLOCK = 2**63 - 1
# Each event takes 16 to 20 bytes in every worker process.
EVENTS_IN_MEMORY = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """The limits from which a task writes its files: higher limits mean fewer files, lower ones need less memory.

    Attributes:
        records: the number of records.
        value_bytes: the size of the records' values.
        decoded_bytes: the size of the decoded columns in memory.
    """

    records: int = 500_000
    value_bytes: int = 256 * MIB
    decoded_bytes: int = 384 * MIB

    def are_reached(self, records: int, value_bytes: int, decoded_bytes: int) -> bool:
        """Return True if a chunk has reached one of the limits."""
        return records >= self.records or value_bytes >= self.value_bytes or decoded_bytes >= self.decoded_bytes


@dataclass(frozen=True, slots=True)
class KnownFile:
    """Identities of ingested events of one Kafka partition, in a file.

    Attributes:
        path: of the file on the store.
        start: the first byte in the file.
        events: the number of identities; 16 bytes each.
        newest: the Kafka timestamp of the newest event, in seconds since 1970; `ANY_TIME` if times are not compared.
        may_expire: True if its stream may delete the file before a task reads it, because its window has passed.
    """

    path: str
    start: int
    events: int
    newest: int
    may_expire: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupPlan:
    """The deduplication window of a batch, as its tasks need it to find duplicates.

    Attributes:
        folder: where the task writes the identities of the events that it accepts.
        batch_id: of the batch; it is in the names of the identity files.
        seed: of the identities.
        window_seconds: events with Kafka timestamps further apart are not duplicates.
        known: the identity files of the window by Kafka partition, the newest first.
        clock: the driver's time, in microseconds since 1970; an event with a later Kafka timestamp counts as received
            at this time.
        in_memory: the largest number of identities that a worker process keeps in memory; the others are in scratch
            files.
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
    """Identity files of events that another stream has ingested.

    Attributes:
        seed: of the identities.
        files: with the identities; times are not compared.
    """

    seed: str
    files: tuple[KnownFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """Everything that a task needs in addition to its records; pickled into the job.

    Attributes:
        lakehouse: where the task writes its files.
        registry_url: of the schema registry.
        topic: the name of the topic, for the rows of bronze.
        contract: the games contract.
        schemas: the columns of the existing tables of games, by table name.
        unlisted_tables: the existing tables of games that the contract does not list.
        schema_wait: the limits of a task's wait for a missing schema.
        schema_limits: the limits of a schema that the task compiles.
        chunk: the limits from which a task writes its files.
        writer_threads: the number of files that a task encodes at a time.
        dedup: the deduplication window; None if deduplication is off.
        rules: the quality rules.
        other_sources: the identities of events that other streams have ingested.
        clock: the driver's time when it planned the batch, in microseconds since 1970: the same in every task and every
            attempt of a task. No event has arrived later.
        shuffle: the folder that a task writes rows of small files to; "" if it writes all files itself.
        skipped: records that are written to the dead letters undecoded.
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
    skipped: tuple[SkippedRecords, ...] = ()

    def for_tables(self, schemas: Mapping[str, pa.Schema]) -> Self:
        """Return the same plan with the columns of existing tables.

        Args:
            schemas: the columns by table name; only tables of games count.
        """
        games = {table: schema for table, schema in schemas.items() if game_of(table)}
        listed = {game.table for game in self.contract.games}
        return replace(self, schemas=games, unlisted_tables=frozenset(games.keys() - listed))


def clock_now() -> int:
    """Return the present time in microseconds since 1970, as the clock of a plan."""
    return time.time_ns() // 1000


class WrittenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A data file and the table that it belongs to.

    Attributes:
        table: the name of the table.
        partition_by: the partition columns of the table, the day first.
        columns: the Arrow schema of the file and its partition columns, as an IPC message.
        schema_ids: the ids of the schemas of the table's rows in this chunk, ascending.
        file: the data file, with its partition and statistics.
    """

    table: str
    partition_by: tuple[str, ...]
    columns: bytes
    schema_ids: tuple[int, ...]
    file: DataFile

    @property
    def newest_schema(self) -> int:
        """The highest schema id; 0 if the rows were not decoded."""
        return max(self.schema_ids, default=0)


class ShuffleFile(msgspec.Struct, frozen=True, kw_only=True):
    """An object with rows of many tables, in the order of groups of tables.

    Attributes:
        path: of the object.
        ends: the end of each group in the object, in bytes.
    """

    path: str
    ends: tuple[int, ...]

    def range(self, first: int, end: int) -> tuple[int, int]:
        """Return the first byte and the number of bytes of the groups from `first` to before `end`."""
        start = self.ends[first - 1] if first else 0
        return start, self.ends[end - 1] - start


class TaskReport(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one chunk of one task.

    Attributes:
        task: a unique id of the task's attempt; "" if it failed.
        files: the data files that the task has written.
        offsets: the offsets of its records, one range for each partition, in the order of partitions.
        dead_letters: the number of dead letters by reason.
        duplicates: the number of duplicates by game.
        events: the identity file of the accepted events; None if there are none.
        judged: the results of the quality rules.
        shuffled: the rows that are not in `files`, for other tasks to write; None if there are none.
        failure: the reason why the task could not process all its records; the report has no files then.
    """

    task: str
    files: tuple[WrittenFile, ...]
    offsets: tuple[OffsetRange, ...]
    dead_letters: dict[str, int]
    duplicates: dict[str, int] = {}
    events: EventsFile | None = None
    judged: Judged = Judged()
    shuffled: ShuffleFile | None = None
    failure: TaskFailure | None = None


def encode_report(report: msgspec.Struct) -> pa.RecordBatch:
    """Encode a report as a batch of one row with the column `report` (binary, MessagePack)."""
    return pa.RecordBatch.from_arrays([pa.array([msgspec.msgpack.encode(report)], pa.binary())], names=["report"])


def decode_reports(rows: Iterable[bytes]) -> list[TaskReport]:
    """Decode the reports of a job from the values of the column `report`, in order."""
    return [msgspec.msgpack.decode(row, type=TaskReport) for row in rows]


def merge_offsets(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Merge the ranges of several tasks and chunks to one range per partition, in the order of partitions."""
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
