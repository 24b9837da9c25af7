"""Streams of the simulated world that write silver/events, by the platform's own batch function and settle records.

What needs Spark is small here: a batch is a list of event ids, and its task is a function in the driver.
"""

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import GamelakeError
from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import SILVER_EVENTS, events_folder
from gamelake.storage import appends, commits, leases, tables
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.columns import conflicts
from gamelake.storage.data_files import DataFile, encode_parquet
from gamelake.storage.leases import LeaseTiming
from gamelake.storage.manifests import BatchManifest, EventsFile, EventsSection, Manifests, OffsetRange, TableFiles
from gamelake.storage.store import Store
from gamelake.storage.tables import CommitOutcome, DeltaTables
from gamelake.streaming import batch, cross_source
from gamelake.streaming.batch import FanOut, OpenStream
from gamelake.streaming.cross_source import EVENTS_OF_FILES, ConcurrentFilesStream, ConcurrentStream, CrossSourceLock
from gamelake.streaming.decision import Decision
from gamelake.streaming.flood import FloodBreaker, FloodLimit
from gamelake.streaming.kafka_source import PlannedOffsets, SourceTopic
from gamelake.streaming.plan import WrittenFile
from gamelake.streaming.stream import Stream
from gamelake.streaming.table_columns import TableColumns
from tests.explorer.simulation import simulate
from tests.explorer.tables import Lake, paths_in
from tests.explorer.world import ReplyLostError, World, calling_process, calling_world

KAFKA, FILES = "ingest", "ingest_files"
TOPIC, TOPIC_ID = "events", "topic-1"
RECORDS = 10
RESTARTS = 6
LEVEL = "level"
_TIMING = LeaseTiming(renew=1, patience=4, poll=1, wait=20)


def simulated_lake(monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The lakehouse of streams, in the simulated world."""
    simulate(monkeypatch, appends, batch, commits, cross_source, leases, tables)
    monkeypatch.setattr(cross_source, "_TIMING", _TIMING)
    return Lake(monkeypatch, tables)


@dataclass
class _Topic:
    """The topic was never made again."""

    def id(self) -> str:
        """Its id."""
        return TOPIC_ID


@dataclass
class OneStepTables:
    """The commits of batches to silver/events: each is one step, and is made once."""

    files: set[str] = field(default_factory=set)

    def schema(self, table: str) -> None:
        """Not known."""

    def columns_for(self, entry: TableFiles, app_id: str) -> None:
        """No batch adds columns."""

    def append(self, entry: TableFiles, transaction: BatchTransaction) -> CommitOutcome:
        """Commit a batch."""
        del transaction
        paths = {file.path for file in entry.files}
        calling_world().perform("commit to silver/events", lambda: self.files.update(paths), is_write=True)
        return CommitOutcome.COMMITTED


@functools.cache
def _silver_file(ids: tuple[str, ...], level: pa.DataType | None) -> tuple[bytes, str, pa.Schema]:
    """A file of silver/events with these events, its statistics and its columns."""
    rows = pa.table({"game_name": ["Archery"] * len(ids), "event_id": list(ids)})
    if level is not None:
        rows = rows.append_column(LEVEL, pa.nulls(len(ids), level))
    content, statistics = encode_parquet(rows, frozenset())
    return content.to_pybytes(), statistics, rows.schema


@dataclass
class _Decider:
    """Writes the events of a batch that the other stream has not ingested, as far as `known` says.

    Attributes:
        level: the type of a further column of the stream's rows; they are dead letters if the table has another type.
    """

    store: Store
    stream: str
    known: Callable[[], set[str]]
    columns: TableColumns
    level: pa.DataType | None = None
    written: int = 0

    def learn(self, columns: Mapping[str, pa.Schema]) -> None:
        """As Decider's."""
        self.columns.learn(columns)

    def decide(self, records: DataFrame, planned: PlannedOffsets, plan: None) -> Decision:
        """Write files for a batch's new events."""
        del plan
        ids = cast("Sequence[str]", records)
        known = self.known()
        new = tuple(each for each in ids if each not in known)
        self.written += 1
        name = f"{self.stream}-{calling_process()}-{self.written}"
        first = planned.before.get(0, 0)
        number = first // RECORDS
        written: tuple[WrittenFile, ...] = ()
        events: tuple[EventsFile, ...] = ()
        refused = len(new) if self._is_refused() else 0
        if new and not refused:
            content, statistics, columns = _silver_file(new, self.level)
            self.store.put(f"{SILVER_EVENTS}/{name}.parquet", content)
            path = f"{events_folder(self.stream)}/{number:012d}-{name}"
            self.store.put(path, "\n".join(new).encode())
            file = DataFile(
                path=f"{name}.parquet", size=len(content), rows=len(new), partition={}, statistics=statistics
            )
            schema = columns.serialize().to_pybytes()
            written = (WrittenFile(table=SILVER_EVENTS, partition_by=(), columns=schema, schema_ids=(), file=file),)
            section = EventsSection(partition=EVENTS_OF_FILES, start=0, events=len(new), newest=1)
            events = (EventsFile(path=path, sections=(section,)),)
        return Decision(
            offsets=(OffsetRange(partition=0, first=first, last=first + RECORDS - 1, records=RECORDS),),
            tables=self.columns.agree(written),
            dead_letters={DeadLetterReason.INCOMPATIBLE_SCHEMA: refused} if refused else {},
            duplicates={"Archery": len(ids) - len(new)} if len(new) < len(ids) else {},
            events=events,
        )

    def _is_refused(self) -> bool:
        have = self.columns.schemas.get(SILVER_EVENTS)
        return self.level is not None and have is not None and conflicts(have, pa.schema([(LEVEL, self.level)]))


def _ids_in(store: Store, manifest: BatchManifest) -> list[str]:
    """The events that a batch adds to silver."""
    found = [store.get(file.path) for file in manifest.events]
    return [each for content in found for each in (content or b"").decode().split("\n")]


@dataclass
class Streams:
    """Two streams, each with its batches of event ids, that both write silver/events.

    Attributes:
        levels: see `_Decider.level`; with them tables are written by the platform's own commits, else each is one step.
    """

    world: World
    lake: Lake
    batches: dict[str, list[list[str]]]
    levels: Mapping[str, pa.DataType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open both streams, and plan their batches as Spark does."""
        self.lake.begin(self.world, {})
        self.plain, self.store = self.lake.plain, self.lake.store
        self.one_step = OneStepTables()
        for name, batches in self.batches.items():
            stream = Stream(self.plain, name, TOPIC)
            folder = stream.open(TOPIC_ID).checkpoint
            for number in range(len(batches)):
                lines = ("v1", "{}", f'{{"{TOPIC}":{{"0":{(number + 1) * RECORDS}}}}}')
                self.plain.put(f"{folder}/offsets/{number}", "\n".join(lines).encode())

    def run(self, name: str) -> None:
        """The driver of a stream, from its start to the end of its last batch."""
        stream = Stream(self.store, name, TOPIC)
        generation = stream.open(TOPIC_ID)
        tables = DeltaTables(self.plain.location) if self.levels else cast("DeltaTables", self.one_step)
        schema = tables.schema(SILVER_EVENTS)
        columns = TableColumns({SILVER_EVENTS: schema} if schema is not None else {})
        other = ConcurrentStream(self.store, FILES if name == KAFKA else KAFKA)
        of_files = ConcurrentFilesStream(other)
        lock: CrossSourceLock = of_files if name == KAFKA else other
        known = (lambda: self._ids(of_files)) if name == KAFKA else (lambda: self._in_silver(other))
        decider = _Decider(self.store, name, known, columns, self.levels.get(name))
        source = OpenStream(stream, generation, tables, cast("SourceTopic", _Topic()))
        fan_out: FanOut[None] = FanOut(source, decider, FloodBreaker(FloodLimit()), Failpoints(), lock=lock)
        for number, ids in enumerate(self.batches[name]):
            fan_out(cast("DataFrame", ids), number)

    def _ids(self, files: ConcurrentFilesStream) -> set[str]:
        """What the stream of Kafka records knows: the identity files of the other stream."""
        paths = [file.path for taken in files.taken for file in taken.files]
        return {each for path in paths for each in (self.store.get(path) or b"").decode().split("\n")}

    def _in_silver(self, kafka: ConcurrentStream) -> set[str]:
        """What the stream of files knows: the rows of silver, and the last batch of the other one."""
        committed = self.world.perform("read silver/events", self._silver_files)
        last = [file.path for entry in kafka.last.tables for file in entry.files] if kafka.last else []
        return {each for path in committed | set(last) for each in self._rows(path)}

    def _silver_files(self) -> set[str]:
        if not self.levels:
            return set(self.one_step.files)
        return set(paths_in(self.plain, SILVER_EVENTS))

    def _rows(self, path: str) -> list[str]:
        content = self.plain.get(f"{SILVER_EVENTS}/{path}")
        return list(_event_ids(content or b""))

    def check(self) -> None:
        """Each event is in one decided batch, and all batches are in the table."""
        decided = [each for name in self.batches for each in Manifests(self.plain, name).last(9)]
        for name, batches in self.batches.items():
            done = [each.batch_id for each in decided if each.stream == name]
            assert done == list(range(len(batches))), f"{name} has decided {done}, errors {self.world.errors}"
        rows = Counter(each for manifest in decided for each in _ids_in(self.plain, manifest))
        dead = sum(sum(each.dead_letters.values()) for each in decided)
        sent = {each for batches in self.batches.values() for ids in batches for each in ids}
        if not self.levels:
            assert dict(rows) == dict.fromkeys(sent, 1), f"rows of each event: {dict(rows)}"
        assert rows.total() + dead == len(sent), f"{rows.total()} rows and {dead} dead letters of {len(sent)} events"
        files = {file.path for each in decided for entry in each.tables for file in entry.files}
        assert files == self._silver_files(), f"silver has other files than the batches, errors {self.world.errors}"
        unexpected = [
            error
            for _, error in self.world.errors
            if error is not None and not isinstance(error, GamelakeError | ReplyLostError)
        ]
        assert not unexpected, unexpected


@functools.lru_cache(maxsize=256)
def _event_ids(content: bytes) -> tuple[str, ...]:
    return tuple(pq.read_table(pa.BufferReader(content), columns=["event_id"])["event_id"].to_pylist())
