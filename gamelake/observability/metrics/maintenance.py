"""The metrics of the maintenance scheduler: runs, tables and retentions."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from prometheus_client import CollectorRegistry

from gamelake.observability.metrics.best_effort import harmless
from gamelake.observability.metrics.endpoint import Heartbeat
from gamelake.observability.metrics.instruments import MetricDefinition, MetricKind

_OUTCOMES = ("ok", "failed")


class MaintenanceMetric(Enum):
    """The metrics by what the code calls them; `monitoring/metrics.yaml` says at length what each means."""

    LAST_SUCCESS = MetricDefinition(
        "gamelake_maintenance_task_last_success_timestamp_seconds",
        MetricKind.GAUGE,
        ("task",),
        "Last successful run of a task, or when the schedule first listed it",
    )
    NEXT = MetricDefinition(
        "gamelake_maintenance_task_next_run_timestamp_seconds",
        MetricKind.GAUGE,
        ("task",),
        "Next run of a task",
    )
    INTERVAL = MetricDefinition(
        "gamelake_maintenance_task_interval_seconds",
        MetricKind.GAUGE,
        ("task",),
        "Time between two scheduled runs of a task",
    )
    SECONDS = MetricDefinition(
        "gamelake_maintenance_task_last_run_seconds",
        MetricKind.GAUGE,
        ("task",),
        "Duration of the last run of a task",
    )
    FAILURES = MetricDefinition(
        "gamelake_maintenance_task_consecutive_failures",
        MetricKind.GAUGE,
        ("task",),
        "Failed runs of a task since its last success",
    )
    RUNS = MetricDefinition(
        "gamelake_maintenance_runs_total",
        MetricKind.COUNTER,
        ("task", "outcome"),
        "Runs that have ended",
    )
    COMPACTED_FILES = MetricDefinition(
        "gamelake_maintenance_compacted_files_total",
        MetricKind.COUNTER,
        ("task",),
        "Files that were replaced by fewer, larger ones",
    )
    COMPACTED_BYTES = MetricDefinition(
        "gamelake_maintenance_compacted_bytes_total",
        MetricKind.COUNTER,
        ("task",),
        "Size of the files that compaction replaced",
    )
    DELETED_FILES = MetricDefinition(
        "gamelake_maintenance_deleted_files_total",
        MetricKind.COUNTER,
        ("task",),
        "Files that were deleted",
    )
    DELETED_BYTES = MetricDefinition(
        "gamelake_maintenance_deleted_bytes_total",
        MetricKind.COUNTER,
        ("task",),
        "Size of the files that were deleted",
    )
    WAITING_FILES = MetricDefinition(
        "gamelake_maintenance_table_pending_files",
        MetricKind.GAUGE,
        ("table",),
        "Small files that the next daily run compacts",
    )
    WAITING_BYTES = MetricDefinition(
        "gamelake_maintenance_table_pending_bytes",
        MetricKind.GAUGE,
        ("table",),
        "Size of the small files that the next daily run compacts",
    )
    LEFT_FILES = MetricDefinition(
        "gamelake_maintenance_table_skipped_files",
        MetricKind.GAUGE,
        ("table",),
        "Small files that only a run with Spark can compact",
    )
    RETENTION = MetricDefinition(
        "gamelake_maintenance_retention_seconds",
        MetricKind.GAUGE,
        ("span",),
        "How long data is kept, or promised",
    )
    FITS = MetricDefinition(
        "gamelake_maintenance_retention_sufficient",
        MetricKind.GAUGE,
        ("longer", "shorter"),
        "1 if a retention is at least as long as another that depends on it",
    )
    LAST_POLL = MetricDefinition(
        "gamelake_maintenance_last_measurement_timestamp_seconds",
        MetricKind.GAUGE,
        (),
        "When all tables were last measured",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFigures:
    """What is known of a task; the totals are those of all its runs ever, by any process."""

    name: str
    last_success: datetime
    next_at: datetime
    interval: timedelta
    seconds: float
    failures: int
    runs: Mapping[str, int]
    totals: Mapping[MaintenanceMetric, int]


@dataclass(frozen=True, slots=True)
class TableFigures:
    """What waits in a table."""

    table: str
    files: int
    bytes: int
    skipped_files: int


class MaintenanceTelemetry:
    """Takes what is known; none of its methods raises."""

    def __init__(self, registry: CollectorRegistry, heartbeat: Heartbeat) -> None:
        self._heartbeat = heartbeat
        self._gauges = {
            each: each.value.gauge(registry) for each in MaintenanceMetric if each.value.kind is MetricKind.GAUGE
        }
        self._counters = {
            each: each.value.counter(registry) for each in MaintenanceMetric if each.value.kind is MetricKind.COUNTER
        }
        self._counted: dict[tuple[MaintenanceMetric, tuple[str, ...]], int] = {}

    @harmless
    def mark_alive(self) -> None:
        """The job moves."""
        self._heartbeat.beat()

    @harmless
    def polled(self) -> None:
        """The tables were read."""
        self._gauges[MaintenanceMetric.LAST_POLL].set(time.time())

    @harmless
    def tasks(self, figures: Sequence[TaskFigures]) -> None:
        """Set the figures of all tasks."""
        for each in figures:
            for metric, value in (
                (MaintenanceMetric.LAST_SUCCESS, each.last_success.timestamp()),
                (MaintenanceMetric.NEXT, each.next_at.timestamp()),
                (MaintenanceMetric.INTERVAL, each.interval.total_seconds()),
                (MaintenanceMetric.SECONDS, each.seconds),
                (MaintenanceMetric.FAILURES, each.failures),
            ):
                self._gauges[metric].labels(each.name).set(value)
            for outcome in _OUTCOMES:
                self._count(MaintenanceMetric.RUNS, each.runs.get(outcome, 0), each.name, outcome)
            for metric, total in each.totals.items():
                self._count(metric, total, each.name)

    @harmless
    def tables(self, figures: Sequence[TableFigures]) -> None:
        """These are the tables; one that is gone has no figures any more."""
        gauges = [self._gauges[each] for each in _OF_A_TABLE]
        for gauge in gauges:
            gauge.clear()
        for each in figures:
            for gauge, value in zip(gauges, (each.files, each.bytes, each.skipped_files), strict=True):
                gauge.labels(each.table).set(value)

    @harmless
    def retentions(self, spans: Mapping[str, timedelta], fits: Mapping[tuple[str, str], bool]) -> None:
        """What is kept for how long, and whether it fits; `timedelta.max` is for ever."""
        for span, kept in spans.items():
            seconds = math.inf if kept == timedelta.max else kept.total_seconds()
            self._gauges[MaintenanceMetric.RETENTION].labels(span).set(seconds)
        for (longer, shorter), does in fits.items():
            self._gauges[MaintenanceMetric.FITS].labels(longer, shorter).set(does)

    def _count(self, metric: MaintenanceMetric, total: int, *labels: str) -> None:
        """Bring a counter to a total that is stored; one that became less begins anew from there."""
        before = self._counted.get((metric, labels), 0)
        self._counters[metric].labels(*labels).inc(max(total - before, 0))
        self._counted[metric, labels] = total


_OF_A_TABLE = (MaintenanceMetric.WAITING_FILES, MaintenanceMetric.WAITING_BYTES, MaintenanceMetric.LEFT_FILES)
