"""Metrics of the service."""

from collections.abc import Callable, Iterable
from enum import StrEnum

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gamelake.observability.metrics import declared
from services.catalog.table_statistics import TableStatistics
from services.catalog.tables import CatalogTable

_TABLE_GAUGES: dict[str, Callable[[TableStatistics], float]] = {
    "gamelake_table_rows": lambda statistics: statistics.rows,
    "gamelake_table_bytes": lambda statistics: statistics.size,
    "gamelake_table_files": lambda statistics: statistics.files,
    "gamelake_table_small_files": lambda statistics: statistics.small_files,
    "gamelake_table_version": lambda statistics: statistics.version,
    "gamelake_table_last_commit_timestamp_seconds": lambda statistics: statistics.committed_at,
}


class CatalogRunOutcome(StrEnum):
    """The outcome of a run; also a label of its counter.

    INCOMPLETE: the run ended, but without some tables or views. FAILED: a service was not available.
    """

    OK = "ok"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class CatalogMetrics(Collector):
    """Metrics of the tables and of the service itself."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._samples: list[tuple[str, list[float]]] = []
        self._registered = declared.gauge(registry, "gamelake_catalog_registered_tables")
        self._runs = declared.counter(registry, "gamelake_catalog_runs_total", "outcome")
        for outcome in CatalogRunOutcome:
            self._runs.labels(outcome)
        self._last_run = declared.gauge(registry, "gamelake_catalog_last_run_timestamp_seconds")
        # Until the first run ends: a service whose runs never end is as late as it is old.
        self._last_run.set_to_current_time()
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Yield the tables' gauges, as last measured; a deleted table has none."""
        samples = self._samples
        for column, name in enumerate(_TABLE_GAUGES):
            family = declared.gauge_family(name, "table")
            for table, values in samples:
                family.add_metric([table], values[column])
            yield family

    def tables(self, figures: Iterable[tuple[CatalogTable, TableStatistics]]) -> None:
        """Export these tables from now on."""
        self._samples = [
            (str(table), [float(value(found)) for value in _TABLE_GAUGES.values()]) for table, found in figures
        ]

    def registered(self, count: int) -> None:
        """Set the number of the lakehouse's tables that are registered in Trino."""
        self._registered.set(count)

    def run_ended(self, outcome: CatalogRunOutcome) -> None:
        """Count a run that has ended."""
        self._runs.labels(outcome).inc()
        if outcome is not CatalogRunOutcome.FAILED:
            self._last_run.set_to_current_time()
