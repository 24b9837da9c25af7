"""Deciding a batch of live operations: run both halves, judge the minutes that are over, publish, and write down."""

from dataclasses import dataclass

import msgspec
from pyspark.sql import DataFrame

from gamelake.fanout.decision import Decision, Parallelism
from gamelake.fanout.offsets import PlannedOffsets, taken_offsets
from gamelake.fanout.plan import TaskPlan
from gamelake.fanout.report import joined_offsets
from gamelake.lake.manifest import StateFiles
from gamelake.lake.store import Store
from gamelake.live_ops.packing import unpack_table
from gamelake.live_ops.plan import LiveOpsPlan, Publication, StatePlan
from gamelake.live_ops.publishing import Publisher
from gamelake.live_ops.reading import PARCEL_TYPES, ReadTask
from gamelake.live_ops.signal_messages import publish_signals
from gamelake.live_ops.state_files import file_prefix, write_table
from gamelake.live_ops.telling import Telling
from gamelake.live_ops.updating import REPORT_TYPES, UpdateReport, UpdateTask
from gamelake.live_ops.watch_tables import additions
from gamelake.live_ops.watching import Watching


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
    telling: Telling

    def decide(self, records: DataFrame, planned: PlannedOffsets, plan: StatePlan | None, /) -> Decision:
        """Read all records of a batch, and bring the states of their players up to date.

        Raises:
            KafkaUnavailableError: Kafka did not take what was published.
            OffsetGapError: the records are not the ones that the batch planned to read.
        """
        assert plan is not None  # noqa: S101 # this stream always remembers
        reports = self._run(records, planned, plan)
        readings = [reading for report in reports for reading in report.readings]
        offsets = taken_offsets(planned, joined_offsets(taken for reading in readings for taken in reading.offsets))
        counts = [unpack_table(reading.counts) for reading in readings]
        judgement = self.watching.judge(counts, [reading.newest for reading in readings])
        publish_signals(self.signals, judgement.changes)
        self.telling.judged(judgement, sum(report.states for report in reports))
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
            ),
        )

    def _run(self, records: DataFrame, planned: PlannedOffsets, state: StatePlan) -> list[UpdateReport]:
        plan = LiveOpsPlan(reading=self.reading, state=state, players=self.players)
        tasks = records.coalesce(self.parallelism.tasks(planned.records))
        parcels = tasks.mapInArrow(ReadTask(plan), PARCEL_TYPES).repartitionById(state.shares, "share")
        rows = parcels.mapInArrow(UpdateTask(plan), REPORT_TYPES).collect()
        return [msgspec.msgpack.decode(bytes(row.report), type=UpdateReport) for row in rows]
