"""Metrics of the service."""

from datetime import datetime

from prometheus_client import CollectorRegistry

from gamelake.observability.metrics import declared


class AuditMetrics:
    """The committed, unreadable and lost records by table, and how far the tables are behind."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._rows = declared.counter(registry, "gamelake_audit_rows_total", "table")
        self._unreadable = declared.counter(registry, "gamelake_audit_unreadable_total", "table")
        self._lost = declared.counter(registry, "gamelake_audit_lost_total", "table")
        self._behind = declared.gauge(registry, "gamelake_audit_offsets_behind", "table")
        self._last = declared.gauge(registry, "gamelake_audit_last_complete_timestamp_seconds", "table")
        self._maintained = declared.gauge(registry, "gamelake_audit_last_maintenance_timestamp_seconds", "table")

    def initialize(self, table: str) -> None:
        """Create all series of a table, with times of 0 until they are known: a start makes no table less late."""
        for series in (self._rows, self._unreadable, self._lost, self._last, self._maintained):
            series.labels(table)

    def committed(self, table: str, rows: int, unreadable: int) -> None:
        """Count committed rows, and those among them whose record has another format."""
        self._rows.labels(table).inc(rows)
        self._unreadable.labels(table).inc(unreadable)

    def lost(self, table: str, records: int) -> None:
        """Count records that are in no table."""
        self._lost.labels(table).inc(records)

    def complete_until(self, table: str, recorded_at: datetime) -> None:
        """Set the time of the oldest record that is not in the table."""
        self._last.labels(table).set(recorded_at.timestamp())

    def behind(self, table: str, offsets: int) -> None:
        """Set the number of offsets that are not in the table."""
        self._behind.labels(table).set(offsets)
        if not offsets:
            self._last.labels(table).set_to_current_time()

    def maintained(self, table: str) -> None:
        """Record that a table was maintained now."""
        self._maintained.labels(table).set_to_current_time()
