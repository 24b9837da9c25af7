"""The batch function of a stream: decides each batch once, then commits it to all tables, at any number of retries."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event, Lock
from typing import Generic, Protocol, TypeVar

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from gamelake.model.errors import (
    AnotherDriverError,
    GamelakeError,
    TableRefusedError,
    TopicRecreatedError,
    TwiceTakenError,
)
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.quality.judging import require_no_failures
from gamelake.storage.appends import columns_of
from gamelake.storage.columns import conflicts, merged_or_first
from gamelake.storage.generations import Generation
from gamelake.storage.manifests import BatchManifest, TableFiles
from gamelake.storage.tables import DeltaTables
from gamelake.streaming.batch_commits import BatchCommits
from gamelake.streaming.batch_records import BatchRecords
from gamelake.streaming.cross_source import DecisionOrder, NoOpDecisionOrder
from gamelake.streaming.decision import Decision
from gamelake.streaming.flood import FloodBreaker
from gamelake.streaming.kafka_source import PlannedOffsets, SourceTopic, check_same_offsets
from gamelake.streaming.observers import BatchObserver
from gamelake.streaming.stream import Stream

log = event_logger(__name__)

_ATTEMPTS = 5
_TURNS = 20
_TICK_SECONDS = 0.1
_MARK_SECONDS = 10

Plan = TypeVar("Plan")
Plan_co = TypeVar("Plan_co", covariant=True)
Plan_contra = TypeVar("Plan_contra", contravariant=True)


class BatchDecider(Protocol[Plan_contra]):
    """Decides what a batch writes to which table."""

    def decide(self, records: BatchRecords, planned: PlannedOffsets, plan: Plan_contra | None, /) -> Decision:
        """Read all records of a batch and write their files; commit nothing."""

    def learn(self, columns: Mapping[str, pa.Schema], /) -> None:
        """Take over the columns that other writers have given to tables, by table name."""


class StreamMemory(Protocol[Plan_co]):
    """State that a stream keeps from batch to batch, such as its deduplication window."""

    @property
    def left_out(self) -> int:
        """How many events the last plan leaves out, as there are more than the limit on their number."""

    def plan(self, seed: str, batch_id: int, /) -> Plan_co:
        """The part of the state that the tasks of a batch need."""

    def took(self, manifest: BatchManifest, /) -> None:
        """Add a batch that all tables have."""


class BatchSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The log line of a batch: its counts and how long its parts took."""

    batch: int
    records: int
    dead_letters: dict[str, int]
    duplicates: dict[str, int] = {}
    quarantined: dict[str, int] = {}
    dropped: dict[str, int] = {}
    tables: int
    files: int
    bytes: int
    decide_seconds: float
    commit_seconds: float
    committed_at: str


@dataclass(frozen=True, slots=True)
class OpenStream:
    """A stream that is ready to run: its checkpoint generation, its topic and the tables that it writes."""

    stream: Stream
    generation: Generation
    tables: DeltaTables
    topic: SourceTopic


class FanOut(Generic[Plan]):
    """The function for `foreachBatch`; Spark calls it again with the same batch after a crash or a failed commit.

    Set `observer` before the query starts.

    Args:
        source: the stream.
        decider: reads the records and writes their files.
        breaker: stops the query if too many records are dead letters.
        failpoints: where tests kill the process.
        window: state kept between batches; without it no duplicates are found.
        order: of the decisions of all streams that write the same tables.
    """

    def __init__(
        self,
        source: OpenStream,
        decider: BatchDecider[Plan],
        breaker: FloodBreaker,
        failpoints: Failpoints,
        window: StreamMemory[Plan] | None = None,
        order: DecisionOrder | None = None,
    ) -> None:
        self._stream = source.stream
        self._generation = source.generation
        self._tables = source.tables
        self._topic = source.topic
        self._decider = decider
        self._window = window
        self._order = order or NoOpDecisionOrder()
        self._breaker = breaker
        self._failpoints = failpoints
        self.observer: BatchObserver = BatchObserver()
        self._commits = BatchCommits(source.stream, source.tables, failpoints, self._report_commit_failure)
        self._running = Lock()
        self._stopping = Event()
        self._last_batch: int | None = None
        self.failure: GamelakeError | None = None
        self._tables.on_log_checkpoint_failure = self._report_log_checkpoint_failure

    def __call__(self, planning: DataFrame, batch_id: int) -> None:
        """Process one micro-batch: decide it, unless it is decided already, and commit it to all tables."""
        self._enter()
        try:
            self._take(planning, batch_id)
        except GamelakeError as error:
            # Spark turns exceptions raised here into text; the job needs the exception itself.
            self.failure = error
            raise
        finally:
            self._running.release()

    def _enter(self) -> None:
        while not self._running.acquire(timeout=_TICK_SECONDS):
            if self._stopping.is_set():
                # `between_batches` holds the lock and stops the query, which waits for this thread to end.
                raise InterruptedError("the query is stopping")

    def _report_commit_failure(self) -> None:
        # The observer may have been set since.
        self.observer.commit_failed()

    def _report_log_checkpoint_failure(self) -> None:
        self.observer.log_checkpoint_failed()

    @contextmanager
    def between_batches(self) -> Iterator[None]:
        """Wait until the running batch is done and its commit is in the checkpoint, then let no other batch start."""
        with self._running:
            self._stopping.set()
            deadline = time.monotonic() + _MARK_SECONDS
            folder = self._stream.folder(self._generation)
            while self._last_batch is not None and time.monotonic() < deadline:
                if folder.is_committed(self._last_batch):
                    break
                time.sleep(_TICK_SECONDS)
            yield

    def _take(self, planning: DataFrame, batch_id: int) -> None:
        started = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            # At once: none needs another, and a request to a far store takes long.
            refreshed = pool.submit(self._order.refresh)
            planned = pool.submit(self._stream.folder(self._generation).planned, batch_id)
            manifest = self._settled(batch_id)
        if manifest is None:
            refreshed.result()
            manifest = self._decide(planning, batch_id, planned.result())
        decided = time.perf_counter()
        self._commits.commit(manifest)
        self.observer.tables_held_back(len(self._commits.held))
        if self._window:
            self._window.took(manifest)
        self._failpoints.reach(Failpoint.AFTER_COMMITS)
        self._last_batch = batch_id
        committed = time.perf_counter()
        self.observer.batch_committed(manifest, decided - started, committed - decided)
        log.info("batch_committed", **_summary(manifest, decided - started, committed - decided))

    def _settled(self, batch_id: int) -> BatchManifest | None:
        """The manifest of a batch that an earlier attempt decided; None if there is none."""
        manifest = self._stream.manifests.read(batch_id)
        if manifest is not None:
            self._check_ours(manifest)
            check_same_offsets(manifest, self._stream.folder(self._generation).offsets(batch_id))
            self._commits.refresh()
            log.warning("batch_already_decided", batch=batch_id, action="finishes its commits")
        return manifest

    def _decide(self, planning: DataFrame, batch_id: int, planned: PlannedOffsets) -> BatchManifest:
        records = self._topic.batch(planning, planned)
        self._failpoints.reach(Failpoint.BEFORE_FILES)
        dedup = self._window.plan(self._generation.query_id, batch_id) if self._window else None
        if self._window:
            self.observer.window_checked(self._window.left_out)
        for _ in range(_ATTEMPTS):
            decision = self._decider.decide(records, planned, dedup)
            self._failpoints.reach(Failpoint.AFTER_FILES)
            self._check_topic()
            self._breaker.check(decision.records, decision.dead_letters)
            require_no_failures(decision.judged)
            manifest = self._manifest(decision, batch_id)
            clashes: dict[str, pa.Schema] = {}
            # Each turn that is lost, another stream has decided a batch: it waits for its next one now.
            for _ in range(_TURNS):
                is_clear = self._order.is_clear(decision.tables)
                clashes = self._clashes(decision.tables) if is_clear else {}
                if not is_clear or clashes:
                    break
                if self._order.record(manifest):
                    return self._settle(manifest)
            if clashes:
                # In the next attempt the records with the conflicting columns become dead letters.
                self._decider.learn(clashes)
                log.warning("batch_decided_again", batch=batch_id, reason="columns of other types", tables=[*clashes])
            else:
                log.info("batch_decided_again", batch=batch_id, reason="another stream has decided some of its events")
            self._order.refresh()
        raise TwiceTakenError(
            f"batch {batch_id}: in {_ATTEMPTS} attempts another stream committed some of its events first"
        )

    def _clashes(self, tables: Sequence[TableFiles]) -> dict[str, pa.Schema]:
        """The columns of tables that other writers have widened so that a decision could not be committed."""
        decided = {entry.table: entry for entry in self._order.decided()}
        columns, clashes = self._columns(tables), {}
        for entry in tables:
            have = columns.get(entry.table)
            others = decided.get(entry.table)
            if others is not None and others.schema != entry.schema:
                have = merged_or_first(have or pa.schema([]), columns_of(others))
            if have is not None and conflicts(have, columns_of(entry)):
                clashes[entry.table] = have
        return clashes

    def _columns(self, tables: Sequence[TableFiles]) -> dict[str, pa.Schema | None]:
        """The newest columns of the tables that have to be read; many at a time, as all have to be in a first batch."""
        unknown = [entry for entry in tables if not self._tables.knows(entry, self._generation.app_id)]
        if not unknown:
            return {}
        with ThreadPoolExecutor(min(len(unknown), self._tables.at_once)) as pool:
            found = pool.map(self._columns_for, unknown)
            return {entry.table: columns for entry, columns in zip(unknown, found, strict=True)}

    def _columns_for(self, entry: TableFiles) -> pa.Schema | None:
        try:
            return self._tables.columns_for(entry, self._generation.app_id)
        except TableRefusedError:
            return None  # the commit will hold the table back

    def _manifest(self, decision: Decision, batch_id: int) -> BatchManifest:
        return BatchManifest(
            stream=self._generation.stream,
            query_id=self._generation.query_id,
            generation=self._generation.number,
            batch_id=batch_id,
            topic=self._generation.topic,
            topic_id=self._generation.topic_id,
            written_at=datetime.now(UTC).isoformat(),
            offsets=decision.offsets,
            tables=decision.tables,
            dead_letters=decision.dead_letters,
            duplicates=decision.duplicates,
            events=decision.events,
            state=decision.state,
            judged=decision.judged,
            files=decision.files,
        )

    def _settle(self, decided: BatchManifest) -> BatchManifest:
        self._failpoints.reach(Failpoint.AFTER_SETTLE_RECORD)
        manifest = self._stream.manifests.settle(decided)
        self._check_ours(manifest)
        self._breaker.count(manifest.records, sum(manifest.dead_letters.values()))
        self._failpoints.reach(Failpoint.AFTER_MANIFEST)
        return manifest

    def _check_ours(self, manifest: BatchManifest) -> None:
        if manifest.app_id != self._generation.app_id:
            raise AnotherDriverError(
                f"batch {manifest.batch_id} was decided by generation {manifest.generation} of this stream, and this "
                f"driver runs generation {self._generation.number}: two drivers run. Stop one, and start the job again"
            )

    def _check_topic(self) -> None:
        """Offsets of a recreated topic with the same name would silently refer to other records."""
        if self._topic.id() != self._generation.topic_id:
            raise TopicRecreatedError(
                f"the topic '{self._generation.topic}' was deleted and created again while this job read it"
            )


def _summary(manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> dict[str, object]:
    files = [file for entry in manifest.tables for file in entry.files]
    summary = BatchSummary(
        batch=manifest.batch_id,
        records=manifest.records,
        dead_letters=manifest.dead_letters,
        duplicates=manifest.duplicates,
        quarantined=manifest.judged.quarantined,
        dropped=manifest.judged.dropped,
        tables=len(manifest.tables),
        files=len(files),
        bytes=sum(file.size for file in files),
        decide_seconds=round(decide_seconds, 3),
        commit_seconds=round(commit_seconds, 3),
        committed_at=datetime.now(UTC).isoformat(),
    )
    return msgspec.structs.asdict(summary)
