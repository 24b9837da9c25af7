"""Brings the parts of the telemetry together for as long as a query runs."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

from gamelake.kafka import KafkaAccess
from gamelake.telemetry.heartbeat import Heartbeat
from gamelake.telemetry.options import TelemetryOptions
from gamelake.telemetry.stream import Observed, StreamTelemetry
from gamelake.telemetry.topic_window import TopicWindow
from gamelake.telemetry.watch import Watch

log = logging.getLogger(__name__)


@contextmanager
def observing(options: TelemetryOptions, observed: Observed, kafka: KafkaAccess) -> Iterator[StreamTelemetry]:
    """Serve the metrics of a query, and watch its topic, until the end of the block."""
    registry = CollectorRegistry()
    # Memory and processor time of the driver's Python.
    ProcessCollector(registry=registry)
    telemetry = StreamTelemetry(observed, registry, Heartbeat(options.heartbeat_file))
    with ExitStack() as stack:
        if options.metrics_port is not None:
            watch = stack.enter_context(Watch(TopicWindow(kafka, observed.topic), telemetry.lag))
            telemetry.on_commit = watch.look_soon
            stack.enter_context(_served(registry, options.metrics_host, options.metrics_port))
        yield telemetry


@contextmanager
def _served(registry: CollectorRegistry, host: str, port: int) -> Iterator[None]:
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        # The stream is worth more than its metrics, and Prometheus tells that they are missing.
        log.error("no metrics at %s:%d: %s", host, port, error)  # noqa: TRY400 # the stack says nothing more
        yield
        return
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
