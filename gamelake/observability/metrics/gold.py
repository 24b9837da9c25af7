"""The metrics of the job that refreshes the gold tables."""

import time
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from prometheus_client import CollectorRegistry

from gamelake.observability.metrics.best_effort import harmless
from gamelake.observability.metrics.endpoint import Heartbeat
from gamelake.observability.metrics.instruments import MetricDefinition, MetricKind

FAILED, HELD = "failed", "held"


class GoldMetric(Enum):
    """The metrics by what the code calls them; `monitoring/metrics.yaml` says at length what each means."""

    REFRESHES = MetricDefinition(
        "gamelake_gold_refreshes_total",
        MetricKind.COUNTER,
        ("outcome",),
        "Checks and refreshes of a gold table, by outcome",
    )
    ROWS = MetricDefinition(
        "gamelake_gold_rows_written_total", MetricKind.COUNTER, ("table",), "Rows that were written to a gold table"
    )
    RUN_SECONDS = MetricDefinition("gamelake_gold_run_seconds", MetricKind.HISTOGRAM, (), "Duration of a run")
    LAST_RUN = MetricDefinition(
        "gamelake_gold_last_run_timestamp_seconds",
        MetricKind.GAUGE,
        (),
        "When the job last completed a run, or found that no table was due",
    )
    REFRESHED = MetricDefinition(
        "gamelake_gold_table_refreshed_timestamp_seconds",
        MetricKind.GAUGE,
        ("table",),
        "When a gold table was last found, or made, equal to silver",
    )
    INTERVAL = MetricDefinition(
        "gamelake_gold_table_interval_seconds",
        MetricKind.GAUGE,
        ("table",),
        "Refresh interval of a gold table",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshFigures:
    """The outcome of one table in a run; `outcome` is FAILED or HELD where it stayed as it was."""

    table: str
    outcome: str
    rows: int
    every: timedelta


class GoldTelemetry:
    """Is notified of runs; none of its methods raises."""

    def __init__(self, registry: CollectorRegistry, heartbeat: Heartbeat) -> None:
        self._heartbeat = heartbeat
        self._refreshes = GoldMetric.REFRESHES.value.counter(registry)
        self._rows = GoldMetric.ROWS.value.counter(registry)
        self._seconds = GoldMetric.RUN_SECONDS.value.histogram(registry)
        self._last_run = GoldMetric.LAST_RUN.value.gauge(registry)
        self._refreshed = GoldMetric.REFRESHED.value.gauge(registry)
        self._interval = GoldMetric.INTERVAL.value.gauge(registry)
        # A series that is there from the start has a rate at its first failure.
        self._refreshes.labels(FAILED)

    @harmless
    def table_refreshed(self, refresh: RefreshFigures) -> None:
        """A run has refreshed a table, or failed to."""
        self._refreshes.labels(refresh.outcome).inc()
        self._interval.labels(refresh.table).set(refresh.every.total_seconds())
        if refresh.outcome in (FAILED, HELD):
            # From the start, so that a table that never succeeds is behind too.
            self._refreshed.labels(refresh.table)
            return
        self._rows.labels(refresh.table).inc(refresh.rows)
        self._refreshed.labels(refresh.table).set(time.time())

    @harmless
    def run_finished(self, seconds: float) -> None:
        """A run is over."""
        self._seconds.observe(seconds)
        self.mark_alive()

    @harmless
    def mark_alive(self) -> None:
        """The job moves, whether anything was due or not."""
        self._last_run.set(time.time())
        self._heartbeat.beat()
