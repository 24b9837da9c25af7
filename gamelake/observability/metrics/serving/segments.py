"""The metrics of segments of players: the duration of refreshes, and the time since the last complete one."""

import time

from prometheus_client import CollectorRegistry

from gamelake.model.observers import harmless
from gamelake.observability.metrics import declared
from gamelake.serving.players.refresh import SegmentsRefreshed


class SegmentTelemetry:
    """Is notified of refreshes; none of its methods raises."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._incomplete_since: float | None = None
        self._seconds = declared.histogram(registry, "gamelake_segments_refresh_seconds")
        self._moves = declared.counter(registry, "gamelake_segments_moves_total")
        declared.gauge(registry, "gamelake_segments_seconds_behind").set_function(self._seconds_behind)

    @harmless
    def refreshed(self, result: SegmentsRefreshed, *, is_complete: bool) -> None:
        """Record a refresh; if it is not complete, at least one segment keeps its former members."""
        self._seconds.observe(result.seconds)
        self._moves.inc(result.moved)
        self._note(is_complete=is_complete)

    @harmless
    def failed(self) -> None:
        """Record a refresh that could not compute any segment."""
        self._note(is_complete=False)

    def _note(self, *, is_complete: bool) -> None:
        if is_complete:
            self._incomplete_since = None
        elif self._incomplete_since is None:
            self._incomplete_since = time.monotonic()

    def _seconds_behind(self) -> float:
        return 0.0 if self._incomplete_since is None else time.monotonic() - self._incomplete_since
