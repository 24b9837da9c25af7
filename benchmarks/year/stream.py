"""The stream of the year: batches that the streaming driver's own code decides and commits, without Spark and Kafka."""

import resource
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from benchmarks.commits import SmallFiles, game_tables
from benchmarks.year.listings import Listings
from benchmarks.year.plan import SimulatedClock, YearPlan
from gamelake.delta.tables import open_table
from gamelake.layers.known_events import Events
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import BatchManifest, EventsFile, EventsSection, OffsetRange
from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import BRONZE_EVENTS, SILVER_EVENTS, events_folder
from gamelake.objects.store import Location, Store
from gamelake.streaming.dedup.cross_source import ConcurrentFilesStream, ConcurrentStream
from gamelake.streaming.dedup.window import DedupLimits, DedupWindow
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.decision import Decision
from gamelake.streaming.driver.flood import FloodBreaker, FloodLimit
from gamelake.streaming.driver.observers import BatchObserver
from gamelake.streaming.driver.stream import Stream
from gamelake.streaming.kafka.batch_records import BatchRecords
from gamelake.streaming.kafka.source import PlannedOffsets, SourceTopic
from gamelake.streaming.plan import DedupPlan

STREAM, FILES_STREAM, TOPIC, TOPIC_ID = "ingest_events", "ingest_files", "events", "topic-of-the-year"
_SHARED_TABLES = 2
_ROWS = 10  # of a file of a game
_KEPT_BY_SPARK = 100
_PAGE = resource.getpagesize()


class BatchSample(msgspec.Struct, frozen=True, kw_only=True):
    """What one batch took.

    Attributes:
        decide_seconds: from its first request to its manifest; its files are written before.
        commit_seconds: the commits to all tables.
        cpu_seconds: of the whole process meanwhile, with the Delta checkpoints that a thread writes.
        listed: objects in the listings that it asked for.
        memory: of the process afterwards, in bytes.
    """

    decide_seconds: float
    commit_seconds: float
    cpu_seconds: float
    listed: int
    memory: int


class YearTopic(SourceTopic):
    """A topic that is never created again."""

    def __init__(self) -> None:  # without that of the base class, which connects to Kafka
        pass

    def id(self) -> str:
        """Its id, without Kafka."""
        return TOPIC_ID

    def batch(self, planning: DataFrame, planned: PlannedOffsets) -> BatchRecords:
        """Nothing that a decider could read: batches are prepared."""
        del planned
        return cast("BatchRecords", planning)


class PreparedDecider:
    """Decides a batch as was prepared before: its files are written already."""

    def __init__(self) -> None:
        self.decision: Decision | None = None

    def decide(self, records: BatchRecords, planned: PlannedOffsets, plan: DedupPlan | None = None) -> Decision:
        """The prepared decision."""
        del records, planned, plan
        assert self.decision is not None  # noqa: S101 # each batch is prepared before it begins
        return self.decision

    def learn(self, columns: Mapping[str, pa.Schema]) -> bool:
        """No other writer gives tables columns."""
        del columns
        return False


class _Timer(BatchObserver):
    decide_seconds = commit_seconds = 0.0

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        del manifest
        self.decide_seconds, self.commit_seconds = decide_seconds, commit_seconds


class YearStream:
    """The stream that writes all tables; a second one exists, so that both settle the order of their decisions."""

    def __init__(
        self,
        place: Location,
        plan: YearPlan,
        clock: SimulatedClock,
        listings: Listings,
        files: Location | None = None,
    ) -> None:
        """Open the stream; `files` is where the data files are written, if not at the same address."""
        self._place, self._plan, self._clock, self._listings = place, plan, clock, listings
        store = self._store = Store(place)
        rows = game_tables(plan.tables - _SHARED_TABLES, _ROWS)
        self._records = sum(rows.values())
        self._files = SmallFiles(files or place, {BRONZE_EVENTS: self._records, SILVER_EVENTS: self._records, **rows})
        self._tables = stream_tables(place)
        Stream(store, FILES_STREAM, "files").open("files")
        stream = Stream(store, STREAM, TOPIC)
        generation = stream.open(TOPIC_ID)
        window = DedupWindow(store, STREAM, DedupLimits(window=plan.window))
        window.resume(stream.manifests)
        self._decider, self._timer = PreparedDecider(), _Timer()
        self._fan_out = FanOut(
            OpenStream(stream, generation, self._tables, YearTopic()),
            self._decider,
            FloodBreaker(FloodLimit()),
            Failpoints(),
            window,
            ConcurrentFilesStream(ConcurrentStream(store, FILES_STREAM)),
            [self._timer],
        )
        self._checkpoint = SparkCheckpoint(store, generation.checkpoint)

    def __enter__(self) -> Self:
        """Use the stream until the end of the block."""
        self._tables.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the Delta checkpoints that are due."""
        self._tables.__exit__(kind, error, trace)

    def run_batch(self, number: int) -> BatchSample:
        """Write the files of a batch, then decide and commit it."""
        self.prepare(number)
        return self.run_prepared(number)

    def prepare(self, number: int) -> None:
        """Write the files of a batch, and which offsets it reads."""
        self._decider.decision = self._prepared(number)
        self._checkpoint.begin(number, (number + 1) * self._records)

    def run_prepared(self, number: int) -> BatchSample:
        """Decide and commit a batch whose files are written."""
        listed, cpu = self._listings.objects, time.process_time()
        # The decider reads no records.
        self._fan_out(cast("DataFrame", None), number)
        sample = BatchSample(
            decide_seconds=self._timer.decide_seconds,
            commit_seconds=self._timer.commit_seconds,
            cpu_seconds=time.process_time() - cpu,
            listed=self._listings.objects - listed,
            memory=int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE,
        )
        self._checkpoint.end(number)
        return sample

    def _prepared(self, number: int) -> Decision:
        now = self._clock.now()
        first = number * self._records
        return Decision(
            offsets=(OffsetRange(partition=0, first=first, last=first + self._records - 1, records=self._records),),
            tables=tuple(self._files.next(now.date())),
            dead_letters={},
            duplicates={},
            events=(self._events(number, now),),
        )

    def _events(self, number: int, now: datetime) -> EventsFile:
        """Write the identities of a batch's events, as its tasks do."""
        identities = np.arange(self._records, dtype=np.uint64) + np.uint64(number * self._records)
        seconds = np.full(self._records, int(now.timestamp()), np.int64)
        path = f"{events_folder(STREAM)}/{number:012d}-{uuid.uuid4()}"
        self._store.put(path, Events.of(identities, identities, seconds).encode())
        section = EventsSection(partition=0, start=0, events=self._records, newest=int(now.timestamp()))
        return EventsFile(path=path, sections=(section,))

    def keep_tombstones(self, kept: timedelta) -> None:
        """Keep removed files in Delta's checkpoints for so long, by the real clock."""
        interval = f"interval {max(1, round(kept.total_seconds()))} seconds"
        for table in self.tables:
            open_table(self._place, table).alter.set_table_properties({"delta.deletedFileRetentionDuration": interval})

    @property
    def tables(self) -> Sequence[str]:
        """The paths of all tables."""
        games = game_tables(self._plan.tables - _SHARED_TABLES)
        return (BRONZE_EVENTS, SILVER_EVENTS, *games)


class SparkCheckpoint:
    """Writes and deletes the files of a Spark checkpoint as Spark does; see `gamelake.streaming.driver.checkpoint`."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path

    def begin(self, batch: int, offset: int) -> None:
        """Write which offsets a batch reads."""
        text = f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{{}}}}\n{{"{TOPIC}":{{"0":{offset}}}}}'
        self._store.put(f"{self._path}/offsets/{batch}", text.encode())

    def end(self, batch: int) -> None:
        """Write that a batch is done, and delete the files of an old one."""
        self._store.put(f"{self._path}/commits/{batch}", b'v1\n{"nextBatchWatermarkMs":0}')
        for log in ("offsets", "commits"):
            self._store.delete(f"{self._path}/{log}/{batch - _KEPT_BY_SPARK}")
