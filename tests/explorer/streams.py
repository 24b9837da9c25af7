"""Streams of the simulated world that write silver/events, by the platform's own batch function and settle records.

What needs Spark is small here: a batch is a list of event ids, and its task is a function in the driver.
"""

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from gamelake.delta import appends, commits, tables
from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import conflicts
from gamelake.delta.data_files import DataFile, encode_parquet
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import CommitOutcome, DeltaTables
from gamelake.layers.identity import Identities
from gamelake.layers.known_events import ANY_TIME, Events
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import BatchManifest, EventsFile, EventsSection, Manifests, OffsetRange
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import GamelakeError, StoreError
from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import SILVER_EVENTS, events_folder, game_table
from gamelake.objects import leases
from gamelake.objects.store import Store
from gamelake.streaming.dedup import cross_source, worker_memory
from gamelake.streaming.dedup import window as dedup_window
from gamelake.streaming.dedup.candidates import CandidateEvents
from gamelake.streaming.dedup.cross_source import ConcurrentFilesStream, ConcurrentStream, DecisionOrder
from gamelake.streaming.dedup.duplicates import DuplicateFilter
from gamelake.streaming.dedup.identity_files import EVENTS_OF_FILES
from gamelake.streaming.dedup.ingested import OtherSources
from gamelake.streaming.dedup.window import DedupLimits, DedupWindow
from gamelake.streaming.dedup.worker_memory import WorkerMemory
from gamelake.streaming.driver import batch, batch_commits, recording, stopping
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.decision import Decision
from gamelake.streaming.driver.flood import FloodBreaker, FloodLimit
from gamelake.streaming.driver.roles import NoMemory, StreamMemory
from gamelake.streaming.driver.stream import Stream
from gamelake.streaming.driver.table_columns import TableColumns
from gamelake.streaming.kafka.batch_records import BatchRecords
from gamelake.streaming.kafka.source import PlannedOffsets, SourceTopic
from gamelake.streaming.plan import DedupPlan, WrittenFile
from tests.explorer.simulation import SimulatedTime, simulate
from tests.explorer.tables import Lake, paths_in
from tests.explorer.world import ReplyLostError, World, calling_process, calling_world

KAFKA, FILES = "ingest", "ingest_files"
TOPIC, TOPIC_ID = "events", "topic-1"
RECORDS = 10
RESTARTS = 6
LEVEL = "level"
_GAME = game_table("Archery")
_DAY = 86_400
_REMEMBERED = timedelta(days=14)


def simulated_lake(monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The lakehouse of streams, in the simulated world."""
    driver = (batch, batch_commits, recording, stopping)
    simulate(monkeypatch, appends, *driver, commits, cross_source, dedup_window, worker_memory, leases, tables)
    return Lake(monkeypatch, tables)


@dataclass
class _Topic:
    """The topic was never made again."""

    def id(self) -> str:
        return TOPIC_ID

    def batch(self, planning: DataFrame, planned: PlannedOffsets) -> BatchRecords:
        """The ids of a batch's events."""
        del planned
        return cast("BatchRecords", planning)


@dataclass
class OneStepTables:
    """The commits of batches to silver/events: each is one step, and is made once."""

    at_once = 1
    files: set[str] = field(default_factory=set)

    def schema(self, table: str) -> None:
        """Not known."""

    def knows(self, entry: TableFiles, app_id: str) -> bool:
        """No batch adds columns."""
        del entry, app_id
        return True

    def append(self, entry: TableFiles, transaction: BatchTransaction) -> CommitOutcome:
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
    seed: str
    known: Callable[[Sequence[str]], set[str]]
    columns: TableColumns
    level: pa.DataType | None = None
    written: int = 0

    def learn(self, columns: Mapping[str, pa.Schema]) -> bool:
        self.columns.learn(columns)
        return True

    def decide(self, records: BatchRecords, planned: PlannedOffsets, plan: object) -> Decision:
        """Write files for a batch's new events."""
        del plan
        ids = cast("Sequence[str]", records)
        known = self.known(ids)
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
            self.store.put(path, _events(self.seed, new).encode())
            file = DataFile(
                path=f"{name}.parquet", size=len(content), rows=len(new), partition={}, statistics=statistics
            )
            schema = columns.serialize().to_pybytes()
            written = (WrittenFile(table=SILVER_EVENTS, partition_by=(), columns=schema, schema_ids=(), file=file),)
            newest = int(SimulatedTime.time())
            section = EventsSection(partition=EVENTS_OF_FILES, start=0, events=len(new), newest=newest)
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


def _candidates(ids: Sequence[str]) -> CandidateEvents:
    zeros = np.zeros(len(ids), np.int64)
    return CandidateEvents(pa.record_batch({"event_id": pa.array(ids, pa.string())}), [_GAME], zeros, zeros, zeros)


def _events(seed: str, ids: Sequence[str]) -> Events:
    """The identities of events, as the stream of files keeps them."""
    seen = _candidates(ids)
    return seen.identified(Identities(seed), np.full(len(ids), ANY_TIME, np.int64))


@dataclass
class Streams:
    """Two streams, each with its batches of event ids, that both write silver/events.

    Attributes:
        levels: see `_Decider.level`; with them tables are written by the platform's own commits, else each is one step.
        days: by stream, on which day of the world's clock each batch comes; all at once if there are none.
        small_files: as of `DedupLimits`, for the stream of files.
    """

    world: World
    lake: Lake
    batches: dict[str, list[list[str]]]
    levels: Mapping[str, pa.DataType] = field(default_factory=dict)
    days: Mapping[str, Sequence[float]] = field(default_factory=dict)
    small_files: int = 256

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
        tables = stream_tables(self.plain.location) if self.levels else cast("DeltaTables", self.one_step)
        schema = tables.schema(SILVER_EVENTS)
        columns = TableColumns({SILVER_EVENTS: schema} if schema is not None else {})
        other = ConcurrentStream(self.store, FILES if name == KAFKA else KAFKA)
        of_files = ConcurrentFilesStream(other, SimulatedTime.time)
        order: DecisionOrder = of_files if name == KAFKA else other
        decider = _Decider(
            self.store,
            name,
            generation.query_id,
            (lambda ids: self._taken(of_files, ids)) if name == KAFKA else (lambda _: self._in_silver(other)),
            columns,
            self.levels.get(name),
        )
        source = OpenStream(stream, generation, tables, cast("SourceTopic", _Topic()))
        window: StreamMemory[DedupPlan | None] = self._window(stream) if name == FILES and self.days else NoMemory()
        breaker = FloodBreaker(FloodLimit())
        fan_out: FanOut[DedupPlan] = FanOut(source, decider, breaker, Failpoints(), window, order)
        for number, ids in enumerate(self.batches[name]):
            if self.days:
                self.world.sleep(max(0.0, self.days[name][number] * _DAY - self.world.now))
            fan_out(cast("DataFrame", ids), number)

    def _window(self, stream: Stream) -> DedupWindow:
        limits = DedupLimits(window=_REMEMBERED, small_files=self.small_files)
        window = DedupWindow(self.store, FILES, limits, lambda: round(SimulatedTime.time() * 1_000_000))
        window.resume(stream.manifests)
        return window

    def _taken(self, files: ConcurrentFilesStream, ids: Sequence[str]) -> set[str]:
        """What a worker that has just started finds of events in the identity files of the other stream."""
        others = OtherSources(files.taken, self.store, WorkerMemory())
        found = DuplicateFilter(others=others).duplicates(_candidates(ids))
        return {each for each, is_taken in zip(ids, found, strict=True) if is_taken}

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
        rows = Counter(each for manifest in decided for path in _silver_of(manifest) for each in self._rows(path))
        dead = sum(sum(each.dead_letters.values()) for each in decided)
        sent = {each for batches in self.batches.values() for ids in batches for each in ids}
        if not self.levels:
            assert dict(rows) == dict.fromkeys(sent, 1), f"rows of each event: {dict(rows)}"
        assert rows.total() + dead == len(sent), f"{rows.total()} rows and {dead} dead letters of {len(sent)} events"
        files = {path for each in decided for path in _silver_of(each)}
        assert files == self._silver_files(), f"silver has other files than the batches, errors {self.world.errors}"
        unexpected = [
            error
            for _, error in self.world.errors
            if error is not None
            and (isinstance(error, StoreError) or not isinstance(error, GamelakeError | ReplyLostError))
        ]
        assert not unexpected, unexpected


def _silver_of(manifest: BatchManifest) -> list[str]:
    return [file.path for entry in manifest.tables for file in entry.files]


@functools.lru_cache(maxsize=256)
def _event_ids(content: bytes) -> tuple[str, ...]:
    return tuple(pq.read_table(pa.BufferReader(content), columns=["event_id"])["event_id"].to_pylist())
