"""The batch function of a stream: decides each batch once and commits it to all tables, however often Spark retries."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pyspark.sql import DataFrame

from gamelake.delta.tables import DeltaTables
from gamelake.ledger.generations import Generation
from gamelake.ledger.manifests import BatchManifest
from gamelake.model.errors import AnotherDriverError, GamelakeError, TopicRecreatedError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.model.observers import all_of
from gamelake.quality.judging import require_no_failures
from gamelake.streaming.dedup.cross_source import DecisionOrder, NoOpDecisionOrder
from gamelake.streaming.driver.batch_commits import BatchCommits
from gamelake.streaming.driver.decision import Decision
from gamelake.streaming.driver.flood import FloodBreaker
from gamelake.streaming.driver.observers import BatchObserver, summary_of
from gamelake.streaming.driver.recording import DecisionRecord
from gamelake.streaming.driver.roles import BatchDecider, NoMemory, StreamMemory
from gamelake.streaming.driver.stopping import BatchGate
from gamelake.streaming.driver.stream import Stream
from gamelake.streaming.kafka.source import PlannedOffsets, SourceTopic, check_same_offsets

log = event_logger(__name__)

Plan = TypeVar("Plan")


@dataclass(frozen=True, slots=True)
class OpenStream:
    """A stream that is ready to run.

    Attributes:
        stream: with its manifests and held tables.
        generation: the checkpoint generation to run.
        tables: that the stream writes.
        topic: that the stream reads.
    """

    stream: Stream
    generation: Generation
    tables: DeltaTables
    topic: SourceTopic


@dataclass(eq=False)
class FanOut(Generic[Plan]):
    """The function for `foreachBatch`; Spark calls it again with the same batch after a crash or a failed commit.

    The steps of a batch:

    1. Find the manifest. If there is one, an earlier attempt has decided the batch: continue with step 5.
    2. Run the tasks, which read the records and write the data files.
    3. Check the topic, the share of dead letters, and the rules.
    4. Settle the decision: record it in the order of all streams, then write the manifest. If another stream was
       faster, or another writer has widened a table, nothing is recorded: return to step 2.
    5. Commit the files to all tables.
    6. Remember the batch in the stream's memory, then report it.

    The record of step 4 decides the batch; if no other stream writes the tables, the manifest does. From then on every
    attempt commits the same files. A process that is killed before that leaves only files without a reference.

    Attributes:
        source: the stream.
        decider: reads the records and writes their files.
        breaker: stops the query if too many records are dead letters.
        failpoints: where tests kill the process.
        memory: state kept between batches; without it no duplicates are found.
        order: of the decisions of all streams that write the same tables.
        observers: are notified of each batch.
        failure: the `GamelakeError` that ended the last batch; None if there was none.
    """

    source: OpenStream
    decider: BatchDecider[Plan]
    breaker: FloodBreaker
    failpoints: Failpoints
    memory: StreamMemory[Plan | None] = field(default_factory=NoMemory)
    order: DecisionOrder = field(default_factory=NoOpDecisionOrder)
    observers: Sequence[BatchObserver] = ()
    failure: GamelakeError | None = field(default=None, init=False)
    _last_batch: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Connect the observers."""
        source, self._observer = self.source, all_of(self.observers)
        self._folder = source.stream.folder(source.generation)
        self._gate = BatchGate()
        self._commits = BatchCommits(source.stream, source.tables, self.failpoints, self._observer.commit_failed)
        source.tables.on_log_checkpoint_failure = self._observer.log_checkpoint_failed

    def __call__(self, planning: DataFrame, batch_id: int) -> None:
        """Process one micro-batch: decide it, unless it is decided already, and commit it to all tables.

        Args:
            planning: the batch of the stream, as Spark passes it; only its session is used.
            batch_id: Spark's number of the batch.

        Raises:
            GamelakeError: the batch can't be decided or committed; the error is kept in `failure`.
            InterruptedError: the query is stopping.
            Exception: any other error; Spark reports it only as text.
        """
        with self._gate.batch():
            try:
                self._process(planning, batch_id)
            except GamelakeError as error:
                # Spark turns exceptions raised here into text; the job needs the exception itself.
                self.failure = error
                raise

    def between_batches(self) -> AbstractContextManager[None]:
        """Wait until the running batch is done and its commit is in the checkpoint; no batch starts during the block.

        The wait for the checkpoint ends after 10 seconds at the latest.
        """
        return self._gate.between_batches(
            lambda: self._last_batch is None or self._folder.is_committed(self._last_batch)
        )

    def _process(self, planning: DataFrame, batch_id: int) -> None:
        started = time.perf_counter()
        found = self._find(batch_id)  # 1
        manifest = found if isinstance(found, BatchManifest) else self._decide(planning, batch_id, found)  # 2 to 4
        decided = time.perf_counter()
        self._commit(manifest)  # 5
        self._remember(manifest)  # 6
        self._report(manifest, decided - started, time.perf_counter() - decided)

    def _find(self, batch_id: int) -> BatchManifest | PlannedOffsets:
        """Step 1: read the manifest, and what a new batch needs: its offsets and the decisions of other streams.

        Returns:
            The manifest of a batch that an earlier attempt decided; else the offsets that the batch must read.

        Raises:
            AnotherDriverError: another generation of the stream decided the batch.
            CheckpointError: the checkpoint has other offsets for the batch than the manifest.
        """
        with ThreadPoolExecutor(2) as pool:
            # Three requests at once: they are independent, and a distant store answers slowly.
            refreshed = pool.submit(self.order.refresh)
            planned = pool.submit(self._folder.planned, batch_id)
            manifest = self.source.stream.manifests.read(batch_id)
            if manifest is not None:
                self._check_ours(manifest)
                check_same_offsets(manifest, self._folder.offsets(batch_id))
                self._commits.refresh()
                log.warning("batch_already_decided", batch=batch_id, action="finishes its commits")
                return manifest
        refreshed.result()
        return planned.result()

    def _decide(self, planning: DataFrame, batch_id: int, planned: PlannedOffsets) -> BatchManifest:
        """Steps 2 to 4: run the tasks of a new batch, check their results, and settle the decision.

        Returns:
            The manifest, which is written.

        Raises:
            TwiceTakenError: another stream was faster in every attempt.
            TopicRecreatedError: the topic was recreated during the batch.
            DeadLetterFloodError: too many records are dead letters.
            GamelakeError: a rule stops the batch, or the decider can't decide it.
        """
        generation = self.source.generation
        record = DecisionRecord(self.order, self.source.tables, self.decider.learn)
        records = self.source.topic.batch(planning, planned)
        self.failpoints.reach(Failpoint.BEFORE_FILES)
        plan, merged = self.memory.plan(generation.query_id, batch_id), self.memory.merged(batch_id)
        self._observer.window_checked(self.memory.left_out)
        while True:
            decision = self.decider.decide(records, planned, plan)  # 2
            self.failpoints.reach(Failpoint.AFTER_FILES)
            self._check(decision)  # 3
            manifest = decision.manifest(generation, batch_id, merged)
            if record.add(manifest):  # 4
                return self._settle(manifest)

    def _check(self, decision: Decision) -> None:
        """Step 3: check the topic, the share of dead letters, and the rules.

        The offsets of a recreated topic with the same name would silently refer to other records.

        Raises:
            TopicRecreatedError: the topic no longer has the id that it had at the start.
            DeadLetterFloodError: too many records are dead letters.
            BrokenRuleError: a row breaks a rule that stops the stream.
        """
        generation = self.source.generation
        if self.source.topic.id() != generation.topic_id:
            raise TopicRecreatedError(
                f"the topic '{generation.topic}' was deleted and created again while this job read it. Nothing "
                "of this batch was committed. To read the new topic from its beginning, run "
                "jobs/rebuild_checkpoint.py --new-topic"
            )
        self.breaker.check(decision.records, decision.dead_letters)
        require_no_failures(decision.judged)

    def _settle(self, decided: BatchManifest) -> BatchManifest:
        """Step 4: write the manifest of a recorded decision, and count its dead letters.

        Returns:
            The manifest that counts: the first one that was written for the batch.

        Raises:
            AnotherDriverError: another generation of the stream has written the manifest first.
        """
        self.failpoints.reach(Failpoint.AFTER_SETTLE_RECORD)
        manifest = self.source.stream.manifests.settle(decided)
        self._check_ours(manifest)
        self.breaker.count(manifest.records, sum(manifest.dead_letters.values()))
        self.failpoints.reach(Failpoint.AFTER_MANIFEST)
        return manifest

    def _check_ours(self, manifest: BatchManifest) -> None:
        """In steps 1 and 4: check that this driver's generation decided a batch.

        Raises:
            AnotherDriverError: another generation did.
        """
        generation = self.source.generation
        if manifest.app_id != generation.app_id:
            raise AnotherDriverError(
                f"batch {manifest.batch_id} was decided by generation {manifest.generation} of this stream, and this "
                f"driver runs generation {generation.number}: two drivers run. Stop one, and start the job again"
            )

    def _commit(self, manifest: BatchManifest) -> None:
        """Step 5: commit the files of a batch to all tables; a table that refuses them is held back.

        Raises:
            GamelakeError: a commit failed for a reason that does not concern one table alone.
        """
        self._commits.commit(manifest)
        self._observer.tables_held_back(len(self._commits.held))

    def _remember(self, manifest: BatchManifest) -> None:
        """Step 6: add a committed batch to the stream's memory."""
        self.memory.took(manifest)
        self.failpoints.reach(Failpoint.AFTER_COMMITS)
        self._last_batch = manifest.batch_id

    def _report(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Report a batch to the observers and the log."""
        self._observer.batch_committed(manifest, decide_seconds, commit_seconds)
        log.info("batch_committed", **summary_of(manifest, decide_seconds, commit_seconds))
