"""Spark's events of a query's life, passed to the telemetry."""

from typing import Protocol

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from gamelake.model.observers import harmless
from gamelake.observability.metrics.stream import StreamProgress


class QueryLife(Protocol):
    """An observer of a query's life; Spark waits for `started`, and for nothing else."""

    def started(self) -> None:
        """Note that Spark runs the query."""

    def progressed(self, progress: StreamProgress) -> None:
        """Note that a trigger is done."""

    def idled(self) -> None:
        """Note that the query waits for records."""

    def terminated(self) -> None:
        """Note that Spark no longer runs the query."""


class ProgressListener(StreamingQueryListener):
    """Listens to the one query of a session; Spark's own names are not ours to choose."""

    def __init__(self, life: QueryLife) -> None:
        self._life = life

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Report that Spark runs the query."""
        self._life.started()

    @harmless
    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Report that a trigger is done."""
        progress = event.progress
        # Offsets behind when the batch was planned, less what the batch took.
        left = max((int(source.metrics.get("maxOffsetsBehindLatest", 0)) for source in progress.sources), default=0)
        self._life.progressed(StreamProgress(dict(progress.durationMs), left))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Report that the query waits for records."""
        self._life.idled()

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Report that Spark no longer runs the query."""
        self._life.terminated()
