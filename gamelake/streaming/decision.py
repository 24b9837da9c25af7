"""Deciding a batch: run its tasks, join what they report, and agree on every table's columns."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from gamelake.model.errors import IncompatibleSchemaError, SplitPartitionError
from gamelake.quality.judging import merge_judged
from gamelake.quality.rules_in_force import NoRules, RulesInForce
from gamelake.storage.manifests import EventsFile, FilesTaken, Judged, OffsetRange, StateFiles, TableFiles
from gamelake.streaming.kafka_source import PlannedOffsets, taken_offsets
from gamelake.streaming.plan import (
    REPORT_SCHEMA,
    DedupPlan,
    OtherSourceEvents,
    TaskPlan,
    TaskReport,
    decode_reports,
    merge_offsets,
)
from gamelake.streaming.table_columns import TableColumns
from gamelake.streaming.task import FanOutTask

log = logging.getLogger(__name__)

_ATTEMPTS = 5


class OtherSource(Protocol):
    """What another stream has taken."""

    @property
    def taken(self) -> tuple[OtherSourceEvents, ...]:
        """The identities of its events."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a batch holds, before it is written down."""

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
        """Records that were read: Kafka's, or those of the files that Kafka's named."""
        return self.files.records if self.files else sum(taken.records for taken in self.offsets)


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How many tasks a batch is worth: few files for small batches, all cores for large ones."""

    cores: int
    records_per_task: int

    def tasks(self, records: int) -> int:
        """Tasks for so many records."""
        return max(1, min(self.cores, -(-records // self.records_per_task)))


class Decider:
    """Runs the fan-out's tasks; remembers the tables' columns from batch to batch.

    `rules` are those in force, and `elsewhere` what another stream has taken; both may be others at each batch.
    """

    def __init__(
        self,
        plan: TaskPlan,
        schemas: dict[str, pa.Schema],
        parallelism: Parallelism,
        rules: RulesInForce | None = None,
        elsewhere: OtherSource | None = None,
    ) -> None:
        self._plan = plan
        self._rules = rules or NoRules()
        self._elsewhere = elsewhere
        self._columns = TableColumns(schemas)
        self._parallelism = parallelism

    def decide(self, records: DataFrame, planned: PlannedOffsets, dedup: DedupPlan | None = None) -> Decision:
        """Read and write all records of a batch; commit nothing.

        Raises:
            IncompatibleSchemaError: the tasks could not agree on a table's columns.
            OffsetGapError: the records are not the ones that the batch planned to read.
            SplitPartitionError: duplicates could have been overlooked.
        """
        taken = self._elsewhere.taken if self._elsewhere else ()
        plan = replace(self._plan, dedup=dedup, rules=self._rules.now(), elsewhere=taken)
        for _ in range(_ATTEMPTS):
            reports = self._run(plan, records, planned)
            try:
                tables = self._columns.agree(file for report in reports for file in report.files)
            except IncompatibleSchemaError as error:
                # In another run the records that have to give way go to the dead letters.
                log.warning("running the batch again: %s", error)
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

    def _run(self, plan: TaskPlan, records: DataFrame, planned: PlannedOffsets) -> list[TaskReport]:
        plan = plan.for_tables(self._columns.schemas)
        tasks = records.coalesce(self._parallelism.tasks(planned.records))
        return decode_reports(bytes(row.report) for row in tasks.mapInArrow(FanOutTask(plan), REPORT_SCHEMA).collect())


def sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts by name, of all together."""
    total = sum((Counter(each) for each in counts), Counter[str]())
    return dict(sorted(total.items()))


def check_one_task_per_partition(reports: Iterable[TaskReport]) -> None:
    """Two tasks that share a Kafka partition can't see each other's events, and would both take the same one.

    Raises:
        SplitPartitionError: it has come to that.
    """
    tasks: dict[int, str] = {}
    for report in reports:
        for taken in report.offsets:
            if tasks.setdefault(taken.partition, report.task) != report.task:
                raise SplitPartitionError(
                    f"the records of partition {taken.partition} came in two tasks, which can't see each other's "
                    "events. Spark must not split Kafka partitions while GAMELAKE_DEDUP_WINDOW_SECONDS is not 0"
                )
