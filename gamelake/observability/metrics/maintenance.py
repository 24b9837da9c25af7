"""The metrics of the maintenance scheduler: runs, tables and retentions."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from prometheus_client import CollectorRegistry, Counter

from gamelake.model.observers import harmless
from gamelake.observability.metrics import declared
from gamelake.observability.metrics.endpoint import Heartbeat

_OUTCOMES = ("ok", "failed")
_OF_A_TASK = (
    "gamelake_maintenance_task_last_success_timestamp_seconds",
    "gamelake_maintenance_task_next_run_timestamp_seconds",
    "gamelake_maintenance_task_interval_seconds",
    "gamelake_maintenance_task_last_run_seconds",
    "gamelake_maintenance_task_consecutive_failures",
)
_OF_A_TABLE = (
    "gamelake_maintenance_table_pending_files",
    "gamelake_maintenance_table_pending_bytes",
    "gamelake_maintenance_table_skipped_files",
)


class MaintenanceTotal(Enum):
    """The counters of a task's work, by their names in the code: declared name, and labels."""

    COMPACTED_FILES = ("gamelake_maintenance_compacted_files_total", "task")
    COMPACTED_BYTES = ("gamelake_maintenance_compacted_bytes_total", "task")
    DELETED_FILES = ("gamelake_maintenance_deleted_files_total", "task")
    DELETED_BYTES = ("gamelake_maintenance_deleted_bytes_total", "task")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFigures:
    """The figures of a task; the totals are those of all its runs ever, by any process."""

    name: str
    last_success: datetime
    next_at: datetime
    interval: timedelta
    seconds: float
    failures: int
    runs: Mapping[str, int]
    totals: Mapping[MaintenanceTotal, int]


@dataclass(frozen=True, slots=True)
class TableFigures:
    """The work that waits in a table."""

    table: str
    files: int
    bytes: int
    skipped_files: int


class MaintenanceTelemetry:
    """Takes what is known; none of its methods raises."""

    def __init__(self, registry: CollectorRegistry, heartbeat: Heartbeat) -> None:
        self._heartbeat = heartbeat
        self._of_a_task = [declared.gauge(registry, name, "task") for name in _OF_A_TASK]
        self._of_a_table = [declared.gauge(registry, name, "table") for name in _OF_A_TABLE]
        self._retention = declared.gauge(registry, "gamelake_maintenance_retention_seconds", "span")
        self._sufficient = declared.gauge(registry, "gamelake_maintenance_retention_sufficient", "longer", "shorter")
        self._measured = declared.gauge(registry, "gamelake_maintenance_last_measurement_timestamp_seconds")
        self._runs = declared.counter(registry, "gamelake_maintenance_runs_total", "task", "outcome")
        self._totals = {total: declared.counter(registry, *total.value) for total in MaintenanceTotal}
        self._counted: dict[tuple[Counter, tuple[str, ...]], int] = {}

    @harmless
    def mark_alive(self) -> None:
        """Record that the job is alive."""
        self._heartbeat.beat()

    @harmless
    def polled(self) -> None:
        """Record that the tables were read."""
        self._measured.set(time.time())

    @harmless
    def tasks(self, figures: Sequence[TaskFigures]) -> None:
        """Set the figures of all tasks."""
        for each in figures:
            values = (
                each.last_success.timestamp(),
                each.next_at.timestamp(),
                each.interval.total_seconds(),
                each.seconds,
                each.failures,
            )
            for gauge, value in zip(self._of_a_task, values, strict=True):
                gauge.labels(each.name).set(value)
            for outcome in _OUTCOMES:
                self._count(self._runs, each.runs.get(outcome, 0), each.name, outcome)
            for total, count in each.totals.items():
                self._count(self._totals[total], count, each.name)

    @harmless
    def tables(self, figures: Sequence[TableFigures]) -> None:
        """Show the figures of these tables, and remove those of tables that are gone."""
        for gauge in self._of_a_table:
            gauge.clear()
        for each in figures:
            for gauge, value in zip(self._of_a_table, (each.files, each.bytes, each.skipped_files), strict=True):
                gauge.labels(each.table).set(value)

    @harmless
    def retentions(self, spans: Mapping[str, timedelta], fits: Mapping[tuple[str, str], bool]) -> None:
        """Show how long each kind of data is kept, and whether it fits; `timedelta.max` is for ever."""
        for span, kept in spans.items():
            seconds = math.inf if kept == timedelta.max else kept.total_seconds()
            self._retention.labels(span).set(seconds)
        for (longer, shorter), does in fits.items():
            self._sufficient.labels(longer, shorter).set(does)

    def _count(self, counter: Counter, total: int, *labels: str) -> None:
        """Bring a counter to a total that is stored; one that became less starts again from there."""
        before = self._counted.get((counter, labels), 0)
        counter.labels(*labels).inc(max(total - before, 0))
        self._counted[counter, labels] = total
