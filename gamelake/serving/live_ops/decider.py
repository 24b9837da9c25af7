"""Deciding a batch of live operations: run both halves, judge the minutes that are over, publish, and write down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.serving.live_ops.observers import JudgementObserver
from gamelake.serving.live_ops.plan import LiveOpsPlan, Publication, StatePlan
from gamelake.serving.live_ops.publishing import Publisher
from gamelake.serving.live_ops.reading import SHARE_TYPES, ReadTask
from gamelake.serving.live_ops.signals import Signal
from gamelake.serving.live_ops.state_files import decode_table, file_prefix, write_table
from gamelake.serving.live_ops.updating import REPORT_TYPES, UpdateReport, UpdateTask
from gamelake.serving.live_ops.watch_tables import additions, signal_rows
from gamelake.serving.live_ops.watching import Watching
from gamelake.storage.manifests import StateFiles
from gamelake.storage.store import Store
from gamelake.streaming.batch_records import BatchRecords, require_read
from gamelake.streaming.decision import Decision, Parallelism
from gamelake.streaming.kafka_source import PlannedOffsets, taken_offsets
from gamelake.streaming.plan import TaskPlan, merge_offsets


def publish_signals(publisher: Publisher, changes: Sequence[Signal]) -> None:
    """Publish what begins and what ends, under the name of the game; returns when Kafka has it.

    Raises:
        KafkaUnavailableError: Kafka did not take them.
    """
    if not changes:
        return
    rows = signal_rows(changes)
    for name in ("kind", "phase"):
        words = pc.binary_join_element_wise(f"SIGNAL_{name.upper()}", pc.utf8_upper(rows[name]), "_")
        rows = rows.set_column(rows.schema.get_field_index(name), name, words)
    publisher.publish(rows["game"].combine_chunks().cast(pa.binary()), rows)


@dataclass(frozen=True, slots=True)
class LiveOpsDecider:
    """Decides the batches of a live-ops stream.

    States and signals are published before the batch is decided: a crash in between has them published again, the same.
    """

    reading: TaskPlan
    players: Publication
    parallelism: Parallelism
    watching: Watching
    signals: Publisher
    observer: JudgementObserver

    def learn(self, columns: Mapping[str, pa.Schema], /) -> None:
        """Do nothing: the columns of this stream's tables never change."""

    def decide(self, records: BatchRecords, planned: PlannedOffsets, plan: StatePlan | None, /) -> Decision:
        """Read all records of a batch, and bring the states of their players up to date.

        Raises:
            KafkaUnavailableError: Kafka does not respond, or did not take what was published.
            OffsetGapError: the records are not the ones that the batch planned to read.
        """
        assert plan is not None  # noqa: S101 # this stream always remembers
        reports = self._run(records, planned, plan)
        readings = [reading for report in reports for reading in report.readings]
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
            dead_letters={},
            duplicates={},
            events=(),
            state=StateFiles(
                moment=max((report.moment for report in reports), default=plan.moment),
                shares=tuple(report.path for report in reports),
                carried=carried,
                changed=changed,
            ),
        )

    def _run(self, records: BatchRecords, planned: PlannedOffsets, state: StatePlan) -> list[UpdateReport]:
        plan = LiveOpsPlan(reading=self.reading, state=state, players=self.players)
        tasks = self.parallelism.tasks(planned.records)
        share_events = records.process(ReadTask(plan), SHARE_TYPES, tasks).repartitionById(state.shares, "share")
        rows = share_events.mapInArrow(UpdateTask(plan), REPORT_TYPES).collect()
        reports = [msgspec.msgpack.decode(bytes(row.report), type=UpdateReport) for row in rows]
        require_read(report.failure for report in reports)
        return reports
