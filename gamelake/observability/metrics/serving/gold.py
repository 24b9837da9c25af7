"""The metrics of the job that refreshes the gold tables."""

import time
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client import CollectorRegistry

from gamelake.model.observers import harmless
from gamelake.observability.metrics import declared
from gamelake.observability.metrics.endpoint import Heartbeat

FAILED, HELD = "failed", "held"


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
        self._refreshes = declared.counter(registry, "gamelake_gold_refreshes_total", "outcome")
        self._rows = declared.counter(registry, "gamelake_gold_rows_written_total", "table")
        self._seconds = declared.histogram(registry, "gamelake_gold_run_seconds")
        self._last_run = declared.gauge(registry, "gamelake_gold_last_run_timestamp_seconds")
        self._refreshed = declared.gauge(registry, "gamelake_gold_table_refreshed_timestamp_seconds", "table")
        self._interval = declared.gauge(registry, "gamelake_gold_table_interval_seconds", "table")
        # A series that is there from the start has a rate at its first failure.
        self._refreshes.labels(FAILED)
        # Until the first success, job and tables are as late as the job is old.
        self._started = time.time()
        self._last_run.set(self._started)
        self._tables: set[str] = set()

    @harmless
    def table_refreshed(self, refresh: RefreshFigures) -> None:
        """Count a table that a run has refreshed, or failed to refresh."""
        self._refreshes.labels(refresh.outcome).inc()
        self._interval.labels(refresh.table).set(refresh.every.total_seconds())
        if refresh.outcome in (FAILED, HELD):
            # A table that never succeeds is behind too.
            if refresh.table not in self._tables:
                self._refreshed.labels(refresh.table).set(self._started)
            return
        self._tables.add(refresh.table)
        self._rows.labels(refresh.table).inc(refresh.rows)
        self._refreshed.labels(refresh.table).set(time.time())

    @harmless
    def run_finished(self, seconds: float) -> None:
        """Record the duration of a run."""
        self._seconds.observe(seconds)
        self.mark_alive()

    @harmless
    def mark_alive(self) -> None:
        """Record that the job is alive, whether anything was due or not."""
        self._last_run.set(time.time())
        self._heartbeat.beat()
