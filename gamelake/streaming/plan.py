"""What the driver tells every task of a batch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import msgspec
import pyarrow as pa

from gamelake.model.games import GamesContract
from gamelake.model.naming import game_of
from gamelake.quality.checking import NO_CHECKED_RULES, CheckedRules
from gamelake.schemas.schema_cache import SchemaWait
from gamelake.storage.data_files import DataFile
from gamelake.storage.manifests import EventsFile, Judged, OffsetRange
from gamelake.storage.store import Location

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """How much a task gathers before it writes files: more means fewer files, less means less memory."""

    records: int = 500_000
    value_bytes: int = 256 * MIB


@dataclass(frozen=True, slots=True)
class KnownFile:
    """Where events of one Kafka partition stand that silver has: a file, from which byte on, how many; the newest."""

    path: str
    start: int
    events: int
    newest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupPlan:
    """What a task needs to find duplicates: whose they would be, and the folder for what it takes itself."""

    folder: str
    batch_id: int
    seed: str
    window_seconds: int
    known: Mapping[int, tuple[KnownFile, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OtherSourceEvents:
    """Files with the identities of events that another stream has taken, and the seed that they were made with."""

    seed: str
    files: tuple[KnownFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """Everything that a task needs besides its records; pickled into the job."""

    lakehouse: Location
    registry_url: str
    topic: str
    contract: GamesContract
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)
    unlisted_tables: frozenset[str] = frozenset()
    schema_wait: SchemaWait = field(default_factory=SchemaWait)
    chunk: ChunkLimits = field(default_factory=ChunkLimits)
    writer_threads: int = 2
    dedup: DedupPlan | None = None
    rules: CheckedRules = NO_CHECKED_RULES
    elsewhere: tuple[OtherSourceEvents, ...] = ()

    def for_tables(self, schemas: Mapping[str, pa.Schema]) -> Self:
        """The same plan, with the columns of the tables that are there."""
        games = {table: schema for table, schema in schemas.items() if game_of(table)}
        listed = {game.table for game in self.contract.games}
        return replace(self, schemas=games, unlisted_tables=frozenset(games.keys() - listed))


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


def encode_report(report: TaskReport) -> pa.RecordBatch:
    """A report as the row that a task yields."""
    return pa.RecordBatch.from_arrays([pa.array([msgspec.msgpack.encode(report)], pa.binary())], names=["report"])


def decode_reports(rows: Iterable[bytes]) -> list[TaskReport]:
    """The reports of a job."""
    return [msgspec.msgpack.decode(row, type=TaskReport) for row in rows]


def merge_offsets(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
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
