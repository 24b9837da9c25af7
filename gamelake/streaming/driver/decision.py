"""Decides a batch: runs its tasks, joins their reports, and merges the columns of every table."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

import msgspec
import pyarrow as pa

from gamelake.delta.table_files import TableFiles
from gamelake.ledger.generations import Generation
from gamelake.ledger.manifests import BatchManifest, EventsFile, FilesTaken, Judged, OffsetRange, StateFiles
from gamelake.ledger.skipped_records import SkippedRecords
from gamelake.model.errors import SplitPartitionError
from gamelake.quality.judging import merge_judged
from gamelake.quality.rules_in_force import NoRules, RulesInForce
from gamelake.streaming.driver.table_columns import TableColumns
from gamelake.streaming.kafka.batch_records import BatchRecords, require_read
from gamelake.streaming.kafka.source import PlannedOffsets, taken_offsets
from gamelake.streaming.plan import (
    MIB,
    ChunkLimits,
    DedupPlan,
    OtherSourceEvents,
    TaskPlan,
    TaskReport,
    WrittenFile,
    clock_now,
    decode_reports,
    merge_offsets,
)
from gamelake.streaming.tasks.table_shuffle import MOST_FILES, merge_shuffled
from gamelake.streaming.tasks.task import FanOutTask

SMALL_CHUNK = ChunkLimits(records=50_000, value_bytes=32 * MIB, decoded_bytes=64 * MIB)


class OtherSource(Protocol):
    """Another stream that writes the same tables.

    `Decider` reads `taken` once for each attempt of a batch, on the thread of the batch, after `DecisionOrder.refresh`.
    It sends no request.
    """

    @property
    def taken(self) -> tuple[OtherSourceEvents, ...]:
        """The identity files of the events that the other stream has ingested, at its last refresh."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The files and counts of a batch, before its manifest is written.

    Attributes:
        offsets: the offsets that were read, one range for each partition, in the order of partitions.
        tables: the files and columns of each table.
        dead_letters: the number of dead letters by reason.
        duplicates: the number of duplicates by game.
        events: the identity files of the accepted events.
        state: the files of a stream's own state; None if it has none.
        judged: the results of the quality rules.
        files: the counts of a batch of files; None for a batch of Kafka records.
    """

    offsets: tuple[OffsetRange, ...]
    tables: tuple[TableFiles, ...]
    dead_letters: dict[str, int]
    duplicates: dict[str, int]
    events: tuple[EventsFile, ...]
    state: StateFiles | None = None
    judged: Judged = field(default_factory=Judged)
    files: FilesTaken | None = None

    @property
    def records(self) -> int:
        """The number of records that were read, from Kafka or from the files of the batch."""
        return self.files.records if self.files else sum(taken.records for taken in self.offsets)

    def manifest(self, generation: Generation, batch_id: int, merged: tuple[EventsFile, ...]) -> BatchManifest:
        """Build the manifest of the batch; nothing is written.

        Args:
            generation: that decides the batch.
            batch_id: of the batch.
            merged: identity files that replace earlier ones.
        """
        return BatchManifest(
            stream=generation.stream,
            query_id=generation.query_id,
            generation=generation.number,
            batch_id=batch_id,
            topic=generation.topic,
            topic_id=generation.topic_id,
            written_at=datetime.now(UTC).isoformat(),
            offsets=self.offsets,
            tables=self.tables,
            dead_letters=self.dead_letters,
            duplicates=self.duplicates,
            events=(*self.events, *merged),
            state=self.state,
            judged=self.judged,
            files=self.files,
        )


@dataclass(frozen=True, slots=True)
class Parallelism:
    """Chooses the number of tasks of a batch: few files for small batches, all cores for large ones.

    Attributes:
        cores: of all executors; the largest number of tasks.
        records_per_task: the number of records for which one task is enough.
    """

    cores: int
    records_per_task: int

    def tasks(self, records: int) -> int:
        """Compute the number of tasks for a number of records; at least 1."""
        return max(1, min(self.cores, -(-records // self.records_per_task)))


class Decider:
    """Runs the tasks of batches of Kafka records; keeps the columns of the tables from batch to batch.

    Args:
        plan: of every batch; the columns, rules, clock and identities are added for each batch.
        schemas: the columns of the existing tables, by table name; they grow with new files.
        parallelism: chooses the number of tasks.
        rules: read again for each batch; None for no rules.
        other_source: read again for each batch; None if no other stream writes the tables.
    """

    def __init__(
        self,
        plan: TaskPlan,
        schemas: dict[str, pa.Schema],
        parallelism: Parallelism,
        rules: RulesInForce | None = None,
        other_source: OtherSource | None = None,
    ) -> None:
        self._plan = plan
        self._rules = rules or NoRules()
        self._other_source = other_source
        self._columns = TableColumns(schemas)
        self._parallelism = parallelism

    def learn(self, columns: Mapping[str, pa.Schema]) -> bool:
        """Replace the known columns of tables that other writers have widened, by table name; return True."""
        self._columns.learn(columns)
        return True

    def skip(self, skipped: Sequence[SkippedRecords]) -> None:
        """Write some records to the dead letters undecoded from now on."""
        self._plan = replace(self._plan, skipped=tuple(skipped))

    def decide(self, records: BatchRecords, planned: PlannedOffsets, dedup: DedupPlan | None = None) -> Decision:
        """Read all records of a batch and write their files; commit nothing.

        Raises:
            KafkaUnavailableError: Kafka does not respond.
            OffsetGapError: the records are not those that the batch planned to read.
            PoisonError: a task fails because of the content of its records.
            SplitPartitionError: two tasks read one Kafka partition, so duplicates could be missed.
        """
        return self._decide(self._present_plan(dedup), records, planned, self._parallelism.tasks(planned.records))

    def decide_with_less_memory(
        self, records: BatchRecords, planned: PlannedOffsets, dedup: DedupPlan | None = None
    ) -> Decision:
        """Decide in one task that keeps few records in memory at a time; see `decide`."""
        return self._decide(replace(self._present_plan(dedup), chunk=SMALL_CHUNK), records, planned, 1)

    def try_part(self, records: BatchRecords, dedup: DedupPlan | None = None) -> None:
        """Process a part of a batch in one task, and discard the results.

        Raises:
            Exception: the task fails or is killed.
        """
        plan = replace(self._present_plan(dedup), chunk=SMALL_CHUNK, shuffle="")
        reports = decode_reports(records.reports(FanOutTask(plan.for_tables(self._columns.schemas)), 1))
        require_read(report.failure for report in reports)

    def _present_plan(self, dedup: DedupPlan | None) -> TaskPlan:
        taken = self._other_source.taken if self._other_source else ()
        return replace(self._plan, dedup=dedup, rules=self._rules.now(), other_sources=taken, clock=clock_now())

    def _decide(self, plan: TaskPlan, records: BatchRecords, planned: PlannedOffsets, tasks: int) -> Decision:
        reports, tables = self._columns.agree_on(lambda: self._run(plan, records, tasks))
        if plan.dedup is not None:
            check_one_task_per_partition(reports)
        offsets = merge_offsets(taken for report in reports for taken in report.offsets)
        return Decision(
            offsets=taken_offsets(planned, offsets),
            tables=tables,
            dead_letters=sum_counts(report.dead_letters for report in reports),
            duplicates=sum_counts(report.duplicates for report in reports),
            events=tuple(report.events for report in reports if report.events is not None),
            judged=msgspec.structs.replace(
                merge_judged(report.judged for report in reports), refused=self._rules.refused
            ),
        )

    def _run(self, plan: TaskPlan, records: BatchRecords, tasks: int) -> tuple[list[TaskReport], list[WrittenFile]]:
        """Run the tasks, and return their reports, and the files of the reports and of the merging tasks."""
        plan = replace(plan.for_tables(self._columns.schemas), shuffle=plan.shuffle if tasks > MOST_FILES else "")
        reports = decode_reports(records.reports(FanOutTask(plan), tasks))
        require_read(report.failure for report in reports)
        files = [file for report in reports for file in report.files]
        return reports, files + merge_shuffled(records.spark, plan, reports)


def sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Sum counts by name, in the order of names."""
    total = sum((Counter(each) for each in counts), Counter[str]())
    return dict(sorted(total.items()))


def check_one_task_per_partition(reports: Iterable[TaskReport]) -> None:
    """Check that each Kafka partition was read by one task: two tasks would both accept the same event.

    Raises:
        SplitPartitionError: two tasks read one partition.
    """
    tasks: dict[int, str] = {}
    for report in reports:
        for taken in report.offsets:
            if tasks.setdefault(taken.partition, report.task) != report.task:
                raise SplitPartitionError(
                    f"the records of partition {taken.partition} were read by two tasks, which can't find each "
                    "other's events. Spark must not split Kafka partitions unless GAMELAKE_DEDUP_WINDOW_SECONDS is 0"
                )
