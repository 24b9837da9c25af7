"""Decides a batch: runs its tasks, joins their reports, and merges the columns of every table."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import msgspec
import pyarrow as pa

from gamelake.model.errors import IncompatibleSchemaError, SplitPartitionError
from gamelake.model.logs import event_logger
from gamelake.quality.judging import merge_judged
from gamelake.quality.rules_in_force import NoRules, RulesInForce
from gamelake.storage.manifests import EventsFile, FilesTaken, Judged, OffsetRange, StateFiles, TableFiles
from gamelake.streaming.batch_records import BatchRecords, require_read
from gamelake.streaming.kafka_source import PlannedOffsets, taken_offsets
from gamelake.streaming.plan import (
    DedupPlan,
    OtherSourceEvents,
    TaskPlan,
    TaskReport,
    WrittenFile,
    clock_now,
    decode_reports,
    merge_offsets,
)
from gamelake.streaming.table_columns import TableColumns
from gamelake.streaming.table_shuffle import MOST_FILES, merge_shuffled
from gamelake.streaming.task import FanOutTask

log = event_logger(__name__)

_ATTEMPTS = 5


class OtherSource(Protocol):
    """Another stream that writes the same tables."""

    @property
    def taken(self) -> tuple[OtherSourceEvents, ...]:
        """The identities of the events that it has ingested."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a batch writes, before its manifest is written; counts are by reason, game or table name."""

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
        """Records that were read, from Kafka or from the files of the batch."""
        return self.files.records if self.files else sum(taken.records for taken in self.offsets)


@dataclass(frozen=True, slots=True)
class Parallelism:
    """The number of tasks of a batch: few files for small batches, all cores for large ones."""

    cores: int
    records_per_task: int

    def tasks(self, records: int) -> int:
        """The number of tasks for a number of records."""
        return max(1, min(self.cores, -(-records // self.records_per_task)))


class Decider:
    """Runs the tasks of batches of Kafka records; keeps the columns of the tables from batch to batch.

    `rules` and `other_source` are read again for each batch.
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

    def learn(self, columns: Mapping[str, pa.Schema]) -> None:
        """Take over the columns that other writers have given to tables, by table name."""
        self._columns.learn(columns)

    def decide(self, records: BatchRecords, planned: PlannedOffsets, dedup: DedupPlan | None = None) -> Decision:
        """Read all records of a batch and write their files; commit nothing.

        Raises:
            IncompatibleSchemaError: a table's columns conflicted in every attempt.
            KafkaUnavailableError: Kafka does not respond.
            OffsetGapError: the records are not those that the batch planned to read.
            SplitPartitionError: two tasks read one Kafka partition, so duplicates could be missed.
        """
        taken = self._other_source.taken if self._other_source else ()
        plan = replace(self._plan, dedup=dedup, rules=self._rules.now(), other_sources=taken, clock=clock_now())
        for _ in range(_ATTEMPTS):
            reports, files = self._run(plan, records, planned)
            try:
                tables = self._columns.agree(files)
            except IncompatibleSchemaError as error:
                # In the next attempt the records with the conflicting column become dead letters.
                log.warning("batch_decided_again", reason=error)
                conflict = error
                continue
            if dedup is not None:
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
        raise conflict

    def _run(
        self, plan: TaskPlan, records: BatchRecords, planned: PlannedOffsets
    ) -> tuple[list[TaskReport], list[WrittenFile]]:
        """Run the tasks; gives their reports, and the files of these and of the tasks that merge."""
        tasks = self._parallelism.tasks(planned.records)
        plan = replace(plan.for_tables(self._columns.schemas), shuffle=plan.shuffle if tasks > MOST_FILES else "")
        reports = decode_reports(records.reports(FanOutTask(plan), tasks))
        require_read(report.failure for report in reports)
        files = [file for report in reports for file in report.files]
        return reports, files + merge_shuffled(records.spark, plan, reports)


def sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of counts by name, in the order of names."""
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
