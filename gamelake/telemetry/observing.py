"""Brings the parts of the telemetry together for as long as a query runs."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from prometheus_client import CollectorRegistry

from gamelake.kafka import KafkaAccess
from gamelake.telemetry.heartbeat import Heartbeat
from gamelake.telemetry.options import TelemetryOptions
from gamelake.telemetry.serving import registry_of_process, served
from gamelake.telemetry.stream import Observed, StreamTelemetry
from gamelake.telemetry.topic_window import TopicWindow
from gamelake.telemetry.watch import Watch


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
            telemetry.on_commit = watch.look_soon
            stack.enter_context(served(registry, options))
        yield telemetry
