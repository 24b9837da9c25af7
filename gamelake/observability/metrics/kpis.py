"""The metrics of the KPI query: its batches, its freshness and the newest KPIs."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from prometheus_client import CollectorRegistry

from gamelake.observability.metrics.best_effort import harmless
from gamelake.observability.metrics.endpoint import Heartbeat
from gamelake.observability.metrics.instruments import MetricDefinition, MetricKind
from gamelake.observability.metrics.stream import StreamProgress


class KpiMetric(Enum):
    """The metrics by what the code calls them; `monitoring/metrics.yaml` says at length what each means."""

    UP = MetricDefinition("gamelake_kpis_up", MetricKind.GAUGE, ("query",), "1 while Spark runs the KPI query")
    LAST_PROGRESS = MetricDefinition(
        "gamelake_kpis_last_progress_timestamp_seconds",
        MetricKind.GAUGE,
        ("query",),
        "When the KPI query last started, finished a batch, or reported that it waits for events",
    )
    SECONDS_BEHIND = MetricDefinition(
        "gamelake_kpis_seconds_behind",
        MetricKind.GAUGE,
        ("query",),
        "Age of the oldest commit of silver/events that is not in the KPI tables, 0 when there is none",
    )
    BATCH_SECONDS = MetricDefinition(
        "gamelake_kpis_batch_seconds", MetricKind.HISTOGRAM, ("query", "phase"), "Duration of a phase of a batch"
    )
    NEWEST_HOUR = MetricDefinition(
        "gamelake_kpi_newest_hour_timestamp_seconds",
        MetricKind.GAUGE,
        (),
        "Start of the newest hour in the KPI tables",
    )
    HOUR_EVENTS = MetricDefinition(
        "gamelake_kpi_hour_events", MetricKind.GAUGE, ("title",), "Events of the newest hour"
    )
    HOUR_BOOKINGS = MetricDefinition(
        "gamelake_kpi_hour_bookings", MetricKind.GAUGE, ("title",), "Bookings of the newest hour, in US dollars"
    )
    LATE_EVENTS = MetricDefinition(
        "gamelake_kpi_late_events_total",
        MetricKind.COUNTER,
        ("title",),
        "Events that arrived after their hour was closed",
    )
    DAY_EVENTS = MetricDefinition("gamelake_kpi_day_events", MetricKind.GAUGE, ("title",), "Events of the newest day")
    DAY_BOOKINGS = MetricDefinition(
        "gamelake_kpi_day_bookings", MetricKind.GAUGE, ("title",), "Bookings of the newest day, in US dollars"
    )
    ACTIVE_PLAYERS = MetricDefinition(
        "gamelake_kpi_active_players",
        MetricKind.GAUGE,
        ("title", "window"),
        "Players of the last day, week and 30 days",
    )
    PLAYERS_ERROR = MetricDefinition(
        "gamelake_kpi_players_error_ratio",
        MetricKind.GAUGE,
        ("title",),
        "Standard error of counts of players, 0 if exact",
    )
    STICKINESS = MetricDefinition(
        "gamelake_kpi_stickiness_ratio",
        MetricKind.GAUGE,
        ("title",),
        "Players of the newest day, divided by those of 30 days",
    )
    PAYERS = MetricDefinition("gamelake_kpi_payers", MetricKind.GAUGE, ("title",), "Paying players of the newest day")
    CONVERSION = MetricDefinition(
        "gamelake_kpi_conversion_ratio",
        MetricKind.GAUGE,
        ("title",),
        "Paying players of the newest day, divided by its players",
    )
    ARPDAU = MetricDefinition(
        "gamelake_kpi_arpdau",
        MetricKind.GAUGE,
        ("title",),
        "Bookings of the newest day, divided by its players, in US dollars",
    )
    SESSIONS = MetricDefinition("gamelake_kpi_sessions", MetricKind.GAUGE, ("title",), "Sessions of the newest day")
    SESSION_SECONDS = MetricDefinition(
        "gamelake_kpi_session_seconds",
        MetricKind.GAUGE,
        ("title", "quantile"),
        "Quantiles of the durations of the newest day's sessions",
    )
    NEW_PLAYERS = MetricDefinition(
        "gamelake_kpi_new_players", MetricKind.GAUGE, ("title",), "Players whose first day is the newest one"
    )
    RETENTION = MetricDefinition(
        "gamelake_kpi_retention_ratio",
        MetricKind.GAUGE,
        ("title", "after"),
        "Share of new players who returned 1, 7 and 30 days later, of the newest such cohort",
    )


@dataclass(frozen=True, slots=True)
class KpiFigure:
    """The value of a gauge, by the labels that are its own."""

    metric: KpiMetric
    labels: tuple[str, ...]
    value: float | None


class KpiTelemetry:
    """Is notified of the KPI query's batches and of its life; none of its methods raises."""

    def __init__(self, query: str, registry: CollectorRegistry, heartbeat: Heartbeat) -> None:
        self._query = query
        self._heartbeat = heartbeat
        self._waiting_since: Callable[[], float | None] = lambda: None
        self._gauges = {each: each.value.gauge(registry) for each in KpiMetric if each.value.kind is MetricKind.GAUGE}
        self._seconds = KpiMetric.BATCH_SECONDS.value.histogram(registry)
        self._late = KpiMetric.LATE_EVENTS.value.counter(registry)
        for metric in (KpiMetric.UP, KpiMetric.LAST_PROGRESS):
            self._gauges[metric].labels(query).set(0)
        self._gauges[KpiMetric.SECONDS_BEHIND].labels(query).set_function(self._seconds_behind)

    def watch(self, waiting_since: Callable[[], float | None]) -> None:
        """Ask from now on since when something waits, at each scrape."""
        self._waiting_since = waiting_since

    @harmless
    def updated(self, late: Mapping[str, int], seconds: float) -> None:
        """The tables have a batch; `late` are the events that came too late with it, by game."""
        self._seconds.labels(self._query, "merge").observe(seconds)
        for game, count in late.items():
            self._late.labels(game).inc(count)

    @harmless
    def show(self, figures: Sequence[KpiFigure]) -> None:
        """These are the newest."""
        for figure in figures:
            gauge = self._gauges[figure.metric]
            shown = gauge.labels(*figure.labels) if figure.labels else gauge
            shown.set(math.nan if figure.value is None else figure.value)

    @harmless
    def started(self) -> None:
        """Spark runs the query."""
        self._gauges[KpiMetric.UP].labels(self._query).set(1)
        self._mark_alive()

    @harmless
    def progressed(self, progress: StreamProgress) -> None:
        """A trigger is done."""
        self._mark_alive()
        if progress.had_batch:
            self._observe(progress.milliseconds)

    @harmless
    def idled(self) -> None:
        """The query waits for events."""
        self._mark_alive()

    @harmless
    def terminated(self) -> None:
        """Spark runs the query no more."""
        self._gauges[KpiMetric.UP].labels(self._query).set(0)

    def _observe(self, milliseconds: Mapping[str, int]) -> None:
        for name, phase in (("addBatch", "add_batch"), ("triggerExecution", "trigger_execution")):
            if name in milliseconds:
                self._seconds.labels(self._query, phase).observe(milliseconds[name] / 1000)

    def _mark_alive(self) -> None:
        self._gauges[KpiMetric.LAST_PROGRESS].labels(self._query).set(time.time())
        self._heartbeat.beat()

    def _seconds_behind(self) -> float:
        since = self._waiting_since()
        return 0.0 if since is None else max(time.time() - since, 0.0)
