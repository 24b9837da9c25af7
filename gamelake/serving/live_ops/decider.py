"""Decides a batch of live operations: runs both halves, judges the minutes that are over, and publishes the results."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.ledger.manifests import StateFiles
from gamelake.ledger.skipped_records import SkippedRecords
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import GamelakeError, TransientError
from gamelake.objects.store import Store
from gamelake.serving.live_ops.plan import LiveOpsPlan, Publication, StatePlan
from gamelake.serving.live_ops.publishing import Publisher
from gamelake.serving.live_ops.reading import SHARE_TYPES, ReadTask
from gamelake.serving.live_ops.signals.observers import JudgementObserver
from gamelake.serving.live_ops.signals.signals import Signal
from gamelake.serving.live_ops.signals.watch_tables import additions, signal_rows
from gamelake.serving.live_ops.signals.watching import Watching
from gamelake.serving.live_ops.states.state_files import decode_table, file_prefix, write_table
from gamelake.serving.live_ops.states.updating import REPORT_TYPES, UpdateReport, UpdateTask
from gamelake.streaming.driver.decision import Decision, Parallelism
from gamelake.streaming.kafka.batch_records import BatchRecords, kind_and_place, require_read
from gamelake.streaming.kafka.source import PlannedOffsets, taken_offsets
from gamelake.streaming.plan import TaskPlan, merge_offsets


def publish_signals(publisher: Publisher, changes: Sequence[Signal]) -> None:
    """Publish signals that began or ended, with the game as the key; return after Kafka has acknowledged them.

    Raises:
        KafkaUnavailableError: Kafka did not acknowledge all of them.
    """
    if not changes:
        return
    rows = signal_rows(changes)
    for name in ("kind", "phase"):
        words = pc.binary_join_element_wise(f"SIGNAL_{name.upper()}", pc.utf8_upper(rows[name]), "_")
        rows = rows.set_column(rows.schema.get_field_index(name), name, words)
    publisher.publish(rows["game"].combine_chunks().cast(pa.binary()), rows)


@contextmanager
def _once() -> Iterator[None]:
    """Replace any other error by one that ends the query: a retry in this process would count minutes twice."""
    try:
        yield
    except GamelakeError:
        raise
    except Exception as error:
        raise TransientError(f"could not judge minutes or write the results: {kind_and_place(error)}") from error


@dataclass(slots=True)
class LiveOpsDecider:
    """Decides the batches of a live-ops stream.

    States and signals are published before the batch is decided. After a crash in between, the same ones are published
    again. The driver's thread calls one method at a time.

    Attributes:
        reading: the plan by which tasks read records.
        players: the topic of players' states.
        parallelism: decides the number of tasks.
        watching: counts and judges minutes.
        signals: publishes to the topic of signals.
        observer: is notified of each judgement.
    """

    reading: TaskPlan
    players: Publication
    parallelism: Parallelism
    watching: Watching
    signals: Publisher
    observer: JudgementObserver

    def learn(self, columns: Mapping[str, pa.Schema], /) -> bool:
        """Return False: the columns of this stream's tables never change, and another decision counts minutes twice."""
        del columns
        return False

    def skip(self, skipped: Sequence[SkippedRecords], /) -> None:
        """Leave some records undecoded from now on; the ingest job has them in bronze."""
        self.reading = replace(self.reading, skipped=tuple(skipped))

    def decide(self, records: BatchRecords, planned: PlannedOffsets, plan: StatePlan | None, /) -> Decision:
        """Read all records of a batch, and update and publish the states of their players.

        Raises:
            KafkaUnavailableError: Kafka does not respond, or did not acknowledge all published values.
            OffsetGapError: the records are not the ones that the batch planned to read.
            PoisonError: a task fails because of its records' content.
            TransientError: minutes could not be judged, or their files could not be written; the query must restart.
        """
        return self._decide(records, planned, plan, self.parallelism.tasks(planned.records))

    def decide_with_less_memory(
        self, records: BatchRecords, planned: PlannedOffsets, plan: StatePlan | None, /
    ) -> Decision:
        """Decide in one task; see `decide`."""
        return self._decide(records, planned, plan, 1)

    def try_part(self, records: BatchRecords, plan: StatePlan | None, /) -> None:
        """Process a part of a batch in one task, and discard the results; raise if a task fails or is killed."""
        assert plan is not None  # noqa: S101 # this stream always remembers
        self._run(records, 1, plan, is_trial=True)

    def _decide(self, records: BatchRecords, planned: PlannedOffsets, plan: StatePlan | None, tasks: int) -> Decision:
        assert plan is not None  # noqa: S101 # this stream always remembers
        reports = self._run(records, tasks, plan)
        with _once():
            return self._publish(reports, planned, plan)

    def _publish(self, reports: Sequence[UpdateReport], planned: PlannedOffsets, plan: StatePlan) -> Decision:
        readings = [reading for report in reports for reading in report.readings]
        skipped = sum(reading.skipped for reading in readings)
        offsets = taken_offsets(planned, merge_offsets(taken for reading in readings for taken in reading.offsets))
        counts = [decode_table(reading.counts) for reading in readings]
        judgement = self.watching.judge(counts, [reading.newest for reading in readings])
        publish_signals(self.signals, judgement.changes)
        changed = sum(report.states for report in reports)
        self.observer.judged(judgement, changed)
        store = Store(self.reading.lakehouse)
        carried = write_table(store, file_prefix(plan.folder, plan.batch_id, "carried"), self.watching.carried())
        return Decision(
            offsets=offsets,
            tables=additions(store, judgement.closed, judgement.changes),
            dead_letters={DeadLetterReason.POISONOUS.value: skipped} if skipped else {},
            duplicates={},
            events=(),
            state=StateFiles(
                moment=max((report.moment for report in reports), default=plan.moment),
                shares=tuple(report.path for report in reports),
                carried=carried,
                changed=changed,
            ),
        )

    def _run(
        self, records: BatchRecords, tasks: int, state: StatePlan, *, is_trial: bool = False
    ) -> list[UpdateReport]:
        plan = LiveOpsPlan(reading=self.reading, state=state, players=self.players, is_trial=is_trial)
        share_events = records.process(ReadTask(plan), SHARE_TYPES, tasks).repartitionById(state.shares, "share")
        rows = share_events.mapInArrow(UpdateTask(plan), REPORT_TYPES).collect()
        reports = [msgspec.msgpack.decode(bytes(row.report), type=UpdateReport) for row in rows]
        require_read(report.failure for report in reports)
        return reports
