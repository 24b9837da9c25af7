"""The stream of Kafka records and the stream of files decide batches with common events, in every order of their steps.

The batch function, the manifests, the settle records, the lease and what a stream knows of the other one are the
platform's own. What needs Spark is small here: a batch is a list of event ids, a table commit one step, done once.
"""

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from gamelake.model.errors import GamelakeError
from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import SILVER_EVENTS, events_folder
from gamelake.storage import leases
from gamelake.storage.appends import BatchTransaction
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
from gamelake.streaming.stream import Stream
from tests.explorer.exploring import Case, effort, exhaustive, explore, sampled
from tests.explorer.simulation import MemoryStore, ScheduledStore, simulate
from tests.explorer.world import Faults, ReplyLostError, World, calling_process, calling_world

KAFKA, FILES = "ingest", "ingest_files"
TOPIC, TOPIC_ID = "events", "topic-1"
RECORDS = 10
TIMING = LeaseTiming(renew=1, patience=4, poll=1, wait=20)
RESTARTS = 6


@pytest.fixture(autouse=True)
def _simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(monkeypatch, leases, batch, cross_source)
    monkeypatch.setattr(cross_source, "_TIMING", TIMING)


@dataclass
class Topic:
    """The topic was never made again."""

    def id(self) -> str:
        """Its id."""
        return TOPIC_ID


@dataclass
class Tables:
    """The commits of batches to silver/events: each is one step, and is made once."""

    files: set[str] = field(default_factory=set)

    def columns_for(self, entry: TableFiles, app_id: str) -> None:
        """No batch adds columns."""

    def append(self, entry: TableFiles, transaction: BatchTransaction) -> CommitOutcome:
        """Commit a batch."""
        del transaction
        paths = {file.path for file in entry.files}
        calling_world().perform("commit to silver/events", lambda: self.files.update(paths), is_write=True)
        return CommitOutcome.COMMITTED


@functools.cache
def silver_file(ids: tuple[str, ...]) -> tuple[bytes, str]:
    """A file of silver/events with these events, and its statistics."""
    rows = pa.table({"game_name": ["Archery"] * len(ids), "event_id": list(ids)})
    content, statistics = encode_parquet(rows, frozenset())
    return content.to_pybytes(), statistics


@dataclass
class Decider:
    """Writes the events of a batch that the other stream has not ingested, as far as `known` says."""

    store: Store
    stream: str
    known: Callable[[], set[str]]
    written: int = 0

    def learn(self, columns: object) -> None:
        """Do nothing: the columns of the tables never change."""

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
        tables: tuple[TableFiles, ...] = ()
        events: tuple[EventsFile, ...] = ()
        if new:
            content, statistics = silver_file(new)
            self.store.put(f"{SILVER_EVENTS}/{name}.parquet", content)
            path = f"{events_folder(self.stream)}/{number:012d}-{name}"
            self.store.put(path, "\n".join(new).encode())
            data = DataFile(
                path=f"{name}.parquet", size=len(content), rows=len(new), partition={}, statistics=statistics
            )
            tables = (TableFiles(table=SILVER_EVENTS, partition_by=(), schema="{}", files=(data,)),)
            section = EventsSection(partition=EVENTS_OF_FILES, start=0, events=len(new), newest=1)
            events = (EventsFile(path=path, sections=(section,)),)
        return Decision(
            offsets=(OffsetRange(partition=0, first=first, last=first + RECORDS - 1, records=RECORDS),),
            tables=tables,
            dead_letters={},
            duplicates={"Archery": len(ids) - len(new)} if len(new) < len(ids) else {},
            events=events,
        )


def ids_in(store: Store, manifest: BatchManifest) -> list[str]:
    """The events that a batch adds to silver."""
    found = [store.get(file.path) for file in manifest.events]
    return [each for content in found for each in (content or b"").decode().split("\n")]


@dataclass
class Lakehouse:
    """Two streams, each with its batches of event ids, that both write silver/events."""

    world: World
    batches: dict[str, list[list[str]]]

    def __post_init__(self) -> None:
        """Open both streams, and plan their batches as Spark does."""
        self.plain = MemoryStore(lambda: self.world.now)
        self.store = ScheduledStore(self.plain)
        self.tables = Tables()
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
        other = ConcurrentStream(self.store, FILES if name == KAFKA else KAFKA)
        lock: CrossSourceLock
        if name == KAFKA:
            lock = of_files = ConcurrentFilesStream(other)
            decider = Decider(self.store, name, lambda: self._ids(of_files))
        else:
            lock = other
            decider = Decider(self.store, name, lambda: self._in_silver(other))
        source = OpenStream(stream, generation, cast("DeltaTables", self.tables), cast("SourceTopic", Topic()))
        fan_out: FanOut[None] = FanOut(source, decider, FloodBreaker(FloodLimit()), Failpoints(), lock=lock)
        for number, ids in enumerate(self.batches[name]):
            fan_out(cast("DataFrame", ids), number)

    def _ids(self, files: ConcurrentFilesStream) -> set[str]:
        """What the stream of Kafka records knows: the identity files of the other stream."""
        paths = [file.path for taken in files.taken for file in taken.files]
        return {each for path in paths for each in (self.store.get(path) or b"").decode().split("\n")}

    def _in_silver(self, kafka: ConcurrentStream) -> set[str]:
        """What the stream of files knows: the rows of silver, and the last batch of the other one."""
        committed = self.world.perform("read silver/events", lambda: set(self.tables.files))
        last = [file.path for entry in kafka.last.tables for file in entry.files] if kafka.last else []
        return {each for path in committed | set(last) for each in self._rows(path)}

    def _rows(self, path: str) -> list[str]:
        content = self.plain.get(f"{SILVER_EVENTS}/{path}")
        return list(_event_ids(content or b""))

    def check(self) -> None:
        """Each event is in one decided batch, and all batches are in the table."""
        decided = [each for name in self.batches for each in Manifests(self.plain, name).last(9)]
        for name, batches in self.batches.items():
            done = [each.batch_id for each in decided if each.stream == name]
            assert done == list(range(len(batches))), f"{name} has decided {done}, errors {self.world.errors}"
        rows = Counter(each for manifest in decided for each in ids_in(self.plain, manifest))
        sent = {each for batches in self.batches.values() for ids in batches for each in ids}
        assert dict(rows) == dict.fromkeys(sent, 1), f"rows of each event: {dict(rows)}"
        files = {file.path for each in decided for entry in each.tables for file in entry.files}
        assert files == self.tables.files, "silver has other files than the batches"
        unexpected = [
            error
            for _, error in self.world.errors
            if error is not None and not isinstance(error, GamelakeError | ReplyLostError)
        ]
        assert not unexpected, unexpected


@functools.lru_cache(maxsize=256)
def _event_ids(content: bytes) -> tuple[str, ...]:
    return tuple(pq.read_table(pa.BufferReader(content), columns=["event_id"])["event_id"].to_pylist())


def streams(kafka: list[list[str]], files: list[list[str]], drivers: int = 1) -> Case:
    """Both streams, the one of Kafka records with so many drivers."""

    def case(world: World) -> Callable[[], None]:
        lake = Lakehouse(world, {KAFKA: kafka, FILES: files})
        for number in range(drivers):
            world.start(f"{KAFKA} {number}", lambda: lake.run(KAFKA), RESTARTS)
        world.start(FILES, lambda: lake.run(FILES), RESTARTS)
        return lake.check

    return case


ONE_EVENT = streams([["a"]], [["a"]])


def test_an_event_of_both_sources_is_one_row_by_each_schedule_with_one_fault() -> None:
    faults = Faults(kills=1, stalls=1, lost_replies=1)

    assert explore(exhaustive(ONE_EVENT, faults, 1), ONE_EVENT, faults) > 100


def test_an_event_of_both_sources_is_one_row_by_random_schedules() -> None:
    faults = Faults(kills=2, stalls=2, lost_replies=2)

    assert explore(sampled(ONE_EVENT, faults, effort(700), 5), ONE_EVENT, faults) > 1_000


def test_events_of_several_batches_are_one_row_each_though_two_drivers_run() -> None:
    faults = Faults(kills=2, stalls=2, lost_replies=1)
    case = streams([["a", "b"], ["c", "d"]], [["b", "c"], ["a", "e"]], drivers=2)

    assert explore(sampled(case, faults, effort(150), 6), case, faults) > 200


def test_a_decision_without_a_settle_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The streams as they were: a process that stalled decided a batch though another one had taken the lease over."""
    monkeypatch.setattr(ConcurrentStream, "record", lambda *_: True)
    faults = Faults(stalls=1)

    with pytest.raises(AssertionError, match=r"rows of each event: \{'a': 2\}"):
        explore(exhaustive(ONE_EVENT, faults, 1), ONE_EVENT, faults)
