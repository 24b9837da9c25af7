"""Metrics of the service."""

from prometheus_client import CollectorRegistry

from gamelake.observability.metrics import declared


class DeliveryMetrics:
    """The memory that the service holds, the records that it has yet to copy, and the time of its last delivery."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._buffered = declared.gauge(registry, "gamelake_delivery_buffered_bytes")
        self._behind = declared.gauge(registry, "gamelake_delivery_offsets_behind")
        self._last = declared.gauge(registry, "gamelake_delivery_last_delivered_timestamp_seconds")
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
