"""Metrics of the service; monitoring/metrics.yaml describes each name."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class AuditMetrics:
    """What was committed by table, what could not be read or was lost, and how far the tables are behind."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._rows = Counter("gamelake_audit_rows_total", "Rows committed", ["table"], registry=registry)
        self._unreadable = Counter(
            "gamelake_audit_unreadable_total", "Rows of records in another format", ["table"], registry=registry
        )
        self._lost = Counter(
            "gamelake_audit_lost_total",
            "Records that Kafka deleted before they were copied",
            ["table"],
            registry=registry,
        )
        self._behind = Gauge(
            "gamelake_audit_offsets_behind",
            "Offsets of the topic that are not in the table",
            ["table"],
            registry=registry,
        )
        self._last = Gauge(
            "gamelake_audit_last_complete_timestamp_seconds",
            "When the table last had all records of its topic",
            ["table"],
            registry=registry,
        )
        self._maintained = Gauge(
            "gamelake_audit_last_maintenance_timestamp_seconds",
            "When small files were last compacted and old days deleted",
            ["table"],
            registry=registry,
        )

    def initialize(self, table: str) -> None:
        """Have all series of a table from the start, as late as the service is old."""
        for counter in (self._rows, self._unreadable, self._lost):
            counter.labels(table)
        self._last.labels(table).set_to_current_time()
        self._maintained.labels(table).set_to_current_time()

    def committed(self, table: str, rows: int, unreadable: int) -> None:
        """Count committed rows, and those among them whose record has another format."""
        self._rows.labels(table).inc(rows)
        self._unreadable.labels(table).inc(unreadable)

    def lost(self, table: str, records: int) -> None:
        """Count records that are in no table."""
        self._lost.labels(table).inc(records)

    def behind(self, table: str, offsets: int) -> None:
        """Set the number of offsets that are not in the table."""
        self._behind.labels(table).set(offsets)
        if not offsets:
            self._last.labels(table).set_to_current_time()

    def maintained(self, table: str) -> None:
        """Record that a table was maintained now."""
        self._maintained.labels(table).set_to_current_time()
