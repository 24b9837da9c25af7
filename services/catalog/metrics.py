"""What the service tells Prometheus; monitoring/metrics.yaml says what each name means."""

from collections.abc import Callable, Iterable
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from services.catalog.table_statistics import TableFigures
from services.catalog.tables import Table

_TABLE_GAUGES: dict[str, tuple[str, Callable[[TableFigures], float]]] = {
    "gamelake_table_rows": ("Rows in the newest version", lambda figures: figures.rows),
    "gamelake_table_bytes": ("Size of the newest version's files", lambda figures: figures.size),
    "gamelake_table_files": ("Files of the newest version", lambda figures: figures.files),
    "gamelake_table_small_files": ("Files smaller than 16 MiB", lambda figures: figures.small_files),
    "gamelake_table_version": ("The newest version", lambda figures: figures.version),
    "gamelake_table_last_commit_timestamp_seconds": (
        "When the newest version was committed",
        lambda figures: figures.committed_at,
    ),
}


class RoundOutcome(StrEnum):
    """How a round ended; also the label of its counter."""

    OK = "ok"
    FAILED = "failed"


class CatalogMetrics(Collector):
    """The figures of the tables and of the service itself."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._samples: list[tuple[str, list[float]]] = []
        self._registered = Gauge(
            "gamelake_catalog_registered_tables",
            "Tables of the lakehouse that are registered in Trino",
            registry=registry,
        )
        self._rounds = Counter("gamelake_catalog_runs", "Runs by outcome", ["outcome"], registry=registry)
        for outcome in RoundOutcome:
            self._rounds.labels(outcome)
        self._last_round = Gauge(
            "gamelake_catalog_last_run_timestamp_seconds", "When the last successful run ended", registry=registry
        )
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """The tables' gauges as they were measured last; a table that is gone has none."""
        samples = self._samples
        for column, (name, (meaning, _)) in enumerate(_TABLE_GAUGES.items()):
            family = GaugeMetricFamily(name, meaning, labels=["table"])
            for table, values in samples:
                family.add_metric([table], values[column])
            yield family

    def tables(self, figures: Iterable[tuple[Table, TableFigures]]) -> None:
        """Show these tables from now on."""
        self._samples = [
            (str(table), [float(value(found)) for _, value in _TABLE_GAUGES.values()]) for table, found in figures
        ]

    def registered(self, count: int) -> None:
        """So many of the lakehouse's tables are known to Trino."""
        self._registered.set(count)

    def round_ended(self, outcome: RoundOutcome) -> None:
        """A round is over."""
        self._rounds.labels(outcome).inc()
        if outcome is RoundOutcome.OK:
            self._last_round.set_to_current_time()
