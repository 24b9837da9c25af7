"""Polls the topic in a thread of its own, whatever the query does meanwhile."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from types import TracebackType
from typing import Protocol, Self

from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry

from gamelake.kafka import KafkaAccess
from gamelake.model.logs import event_logger
from gamelake.model.options import TelemetryOptions
from gamelake.observability.metrics.endpoint import Heartbeat, registry_of_process, served
from gamelake.observability.metrics.lag import Lag, LagReading, OffsetSpan, Oldest
from gamelake.observability.metrics.stream import Observed, StreamTelemetry
from gamelake.observability.metrics.topic_window import TopicWindow

log = event_logger(__name__)

_POLL_SECONDS = 5.0
_SHORTEST_PAUSE_SECONDS = 1.0


class Window(Protocol):
    """The questions about a topic."""

    def spans(self) -> dict[int, OffsetSpan]:
        """Return the offsets that Kafka holds of each partition; raise when it does not answer."""

    def oldest(self, starts: dict[int, int]) -> dict[int, Oldest]:
        """Return the first record of each partition from an offset on, without those that did not come in time."""

    def close(self) -> None:
        """Close the connections."""


class Watch:
    """Keeps a lag up to date: every few seconds, and soon after a commit."""

    def __init__(self, window: Window, lag: Lag) -> None:
        self._window = window
        self._lag = lag
        self._due = Event()
        self._ended = Event()
        self._thread = Thread(target=self._run, name="lag", daemon=True)
        self._responds = True

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reading the lag; does not wait for a Kafka that is silent, since the thread is a daemon."""
        self._ended.set()
        self._due.set()
        self._thread.join(_SHORTEST_PAUSE_SECONDS)

    def poll_soon(self) -> None:
        """Poll soon, since something was committed."""
        self._due.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._due.clear()
            self._poll()
            self._ended.wait(_SHORTEST_PAUSE_SECONDS)
            self._due.wait(_POLL_SECONDS - _SHORTEST_PAUSE_SECONDS)
        self._window.close()

    def _poll(self) -> None:
        try:
            spans = self._window.spans()
            self._lag.update(LagReading(time.time(), spans, self._window.oldest(self._lag.unread(spans))))
        except Exception as error:
            if self._responds:
                expected = isinstance(error, KafkaException | TimeoutError)
                log.warning("topic_end_unknown", error=error, action="tries again", exc_info=not expected)
            self._responds = False
        else:
            self._responds = True


@contextmanager
def observing(
    options: TelemetryOptions, observed: Observed, kafka: KafkaAccess, registry: CollectorRegistry | None = None
) -> Iterator[StreamTelemetry]:
    """Serve the metrics of a query, and watch its topic, until the end of the block; others may be in `registry`."""
    registry = registry or registry_of_process()
    telemetry = StreamTelemetry(observed, registry, Heartbeat(options.heartbeat_file))
    with ExitStack() as stack:
        if options.metrics_port is not None:
            watch = stack.enter_context(Watch(TopicWindow(kafka, observed.topic), telemetry.lag))
            telemetry.on_commit = watch.poll_soon
            stack.enter_context(served(registry, options))
        yield telemetry
