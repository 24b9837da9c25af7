"""Metrics of the service; monitoring/metrics.yaml describes each name."""

from collections.abc import Callable, Iterable
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from services.catalog.table_statistics import TableStatistics
from services.catalog.tables import CatalogTable

_TABLE_GAUGES: dict[str, tuple[str, Callable[[TableStatistics], float]]] = {
    "gamelake_table_rows": ("Rows in the newest version", lambda statistics: statistics.rows),
    "gamelake_table_bytes": ("Size of the newest version's files", lambda statistics: statistics.size),
    "gamelake_table_files": ("Files of the newest version", lambda statistics: statistics.files),
    "gamelake_table_small_files": ("Files smaller than 16 MiB", lambda statistics: statistics.small_files),
    "gamelake_table_version": ("The newest version", lambda statistics: statistics.version),
    "gamelake_table_last_commit_timestamp_seconds": (
        "When the newest version was committed",
        lambda statistics: statistics.committed_at,
    ),
}


class CatalogRunOutcome(StrEnum):
    """The outcome of a run; also a label of its counter."""

    OK = "ok"
    FAILED = "failed"


class CatalogMetrics(Collector):
    """Metrics of the tables and of the service itself."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._samples: list[tuple[str, list[float]]] = []
        self._registered = Gauge(
            "gamelake_catalog_registered_tables",
            "Tables of the lakehouse that are registered in Trino",
            registry=registry,
        )
        self._runs = Counter("gamelake_catalog_runs", "Runs by outcome", ["outcome"], registry=registry)
        for outcome in CatalogRunOutcome:
            self._runs.labels(outcome)
        self._last_run = Gauge(
            "gamelake_catalog_last_run_timestamp_seconds", "When the last successful run ended", registry=registry
        )
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """The tables' gauges, as last measured; a deleted table has none."""
        samples = self._samples
        for column, (name, (meaning, _)) in enumerate(_TABLE_GAUGES.items()):
            family = GaugeMetricFamily(name, meaning, labels=["table"])
            for table, values in samples:
                family.add_metric([table], values[column])
            yield family

    def tables(self, figures: Iterable[tuple[CatalogTable, TableStatistics]]) -> None:
        """Export these tables from now on."""
        self._samples = [
            (str(table), [float(value(found)) for _, value in _TABLE_GAUGES.values()]) for table, found in figures
        ]

    def registered(self, count: int) -> None:
        """Set the number of the lakehouse's tables that are registered in Trino."""
        self._registered.set(count)

    def run_ended(self, outcome: CatalogRunOutcome) -> None:
        """Count a run that has ended."""
        self._runs.labels(outcome).inc()
        if outcome is CatalogRunOutcome.OK:
            self._last_run.set_to_current_time()
