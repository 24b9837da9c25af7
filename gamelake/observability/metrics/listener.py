"""Spark's events of a query's life, passed to the telemetry."""

from typing import Protocol

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from gamelake.observability.metrics.best_effort import harmless
from gamelake.observability.metrics.stream import StreamProgress


class QueryLife(Protocol):
    """An observer of a query's life; Spark waits for `started`, and for nothing else."""

    def started(self) -> None:
        """Spark runs the query."""

    def progressed(self, progress: StreamProgress) -> None:
        """A trigger is done."""

    def idled(self) -> None:
        """The query waits for records."""

    def terminated(self) -> None:
        """Spark runs the query no more."""


class ProgressListener(StreamingQueryListener):
    """Listens to the one query of a session; Spark's own names are not ours to choose."""

    def __init__(self, life: QueryLife) -> None:
        self._life = life

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Spark runs the query."""
        self._life.started()

    @harmless
    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """A trigger is done."""
        progress = event.progress
        # Offsets behind when the batch was planned, less what the batch took.
        left = max((int(source.metrics.get("maxOffsetsBehindLatest", 0)) for source in progress.sources), default=0)
        self._life.progressed(StreamProgress(dict(progress.durationMs), left))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """The query waits for records."""
        self._life.idled()

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Spark runs the query no more."""
        self._life.terminated()
