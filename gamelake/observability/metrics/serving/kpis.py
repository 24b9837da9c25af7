"""The metrics of KPIs: their refreshes, their freshness, and the newest of them."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from gamelake.model.observers import harmless
from gamelake.observability.metrics import declared


class KpiMetric(Enum):
    """The gauges of the newest hour and day by their names in the code: declared name, and labels."""

    NEWEST_HOUR = ("gamelake_kpi_newest_hour_timestamp_seconds",)
    HOUR_EVENTS = ("gamelake_kpi_hour_events", "title")
    HOUR_BOOKINGS = ("gamelake_kpi_hour_bookings", "title")
    DAY_EVENTS = ("gamelake_kpi_day_events", "title")
    DAY_LATE_EVENTS = ("gamelake_kpi_day_late_events", "title")
    DAY_BOOKINGS = ("gamelake_kpi_day_bookings", "title")
    ACTIVE_PLAYERS = ("gamelake_kpi_active_players", "title", "window")
    STICKINESS = ("gamelake_kpi_stickiness_ratio", "title")
    PAYERS = ("gamelake_kpi_payers", "title")
    CONVERSION = ("gamelake_kpi_conversion_ratio", "title")
    ARPDAU = ("gamelake_kpi_arpdau", "title")
    SESSIONS = ("gamelake_kpi_sessions", "title")
    SESSION_SECONDS = ("gamelake_kpi_session_seconds", "title", "quantile")
    NEW_PLAYERS = ("gamelake_kpi_new_players", "title")
    RETENTION = ("gamelake_kpi_retention_ratio", "title", "after")
    LTV = ("gamelake_kpi_ltv", "title", "after")
    PEAK_CONCURRENT = ("gamelake_kpi_peak_concurrent_players", "title")
    UNUSUAL_SOURCES = ("gamelake_kpi_unusual_sources", "title")
    CRASH_FREE_SESSIONS = ("gamelake_kpi_crash_free_sessions_ratio", "title")
    LOAD_SECONDS = ("gamelake_kpi_load_seconds", "title")


@dataclass(frozen=True, slots=True)
class KpiFigure:
    """The value of a gauge, by the labels that are its own; None where there is no such figure."""

    metric: KpiMetric
    labels: tuple[str, ...]
    value: float | None


class KpiTelemetry(Collector):
    """Is notified of refreshes; none of its methods raises. Each scrape has the figures of one of them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._figures: Sequence[KpiFigure] = ()
        self._of_games: Sequence[KpiFigure] = ()
        self._waiting_since: float | None = None
        self._seconds = declared.histogram(registry, "gamelake_kpis_refresh_seconds")
        self._failed = declared.gauge(registry, "gamelake_kpis_failed_games")
        declared.gauge(registry, "gamelake_kpis_seconds_behind").set_function(self._seconds_behind)
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges of the figures; a game without a figure has no series of it."""
        figures = [*self._figures, *self._of_games]
        for metric in KpiMetric:
            family = declared.gauge_family(*metric.value)
            for figure in figures:
                # NaN of one game would make the average of all games NaN.
                if figure.metric is metric and figure.value is not None:
                    family.add_metric(figure.labels, figure.value)
            yield family

    @harmless
    def refreshed(self, seconds: float, failed: int) -> None:
        """Record a refresh, which could not compute the KPIs of some games."""
        self._seconds.observe(seconds)
        self._failed.set(failed)

    @harmless
    def show(self, figures: Sequence[KpiFigure]) -> None:
        """Show these figures, and no older ones."""
        self._figures = figures

    @harmless
    def show_games(self, figures: Sequence[KpiFigure]) -> None:
        """Show these figures of the games' own gold tables, and no older ones."""
        self._of_games = figures

    @harmless
    def wait_since(self, moment: float | None) -> None:
        """Set the age of the oldest events that the figures lack (seconds since 1970); None if they lack none."""
        self._waiting_since = moment

    def _seconds_behind(self) -> float:
        return 0.0 if self._waiting_since is None else max(time.time() - self._waiting_since, 0.0)
