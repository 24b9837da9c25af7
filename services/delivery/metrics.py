"""Metrics of the service; monitoring/metrics.yaml describes each name."""

from prometheus_client import CollectorRegistry, Gauge


class DeliveryMetrics:
    """What the service holds in memory, what it has yet to copy, and when it last delivered."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._buffered = Gauge(
            "gamelake_delivery_buffered_bytes", "Memory that unfinished files take", registry=registry
        )
        self._behind = Gauge(
            "gamelake_delivery_offsets_behind", "Offsets of the topic that are in no delivered file", registry=registry
        )
        self._last = Gauge(
            "gamelake_delivery_last_delivered_timestamp_seconds",
            "When offsets were last committed, or none were left to commit",
            registry=registry,
        )
        # Until the first delivery: a service that never delivers is as late as it is old.
        self._last.set_to_current_time()

    def buffered(self, size: int) -> None:
        """Set the memory that unfinished files take, in bytes."""
        self._buffered.set(size)

    def behind(self, offsets: int) -> None:
        """Set the number of offsets that are in no delivered file."""
        self._behind.set(offsets)
        if not offsets:
            self._last.set_to_current_time()

    def delivered(self) -> None:
        """Record that a file's offsets were committed now."""
        self._last.set_to_current_time()
