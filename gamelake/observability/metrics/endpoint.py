"""Serves metrics over HTTP while the process works."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

from gamelake.model.logs import event_logger
from gamelake.model.options import TelemetryOptions
from gamelake.observability.metrics.best_effort import harmless


class Heartbeat:
    """Touches a file; without one it does nothing."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    @harmless
    def beat(self) -> None:
        """Record that the query is alive now."""
        if self._file is not None:
            self._file.touch()


log = event_logger(__name__)


def registry_of_process() -> CollectorRegistry:
    """A new registry that has the memory and the processor time of this Python, which drives Spark."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    return registry


@contextmanager
def served(registry: CollectorRegistry, options: TelemetryOptions) -> Iterator[None]:
    """Serve the metrics of a registry until the end of the block, if the options ask for them."""
    if options.metrics_port is None:
        yield
        return
    try:
        server, thread = start_http_server(options.metrics_port, options.metrics_host, registry)
    except OSError as error:
        # The work is worth more than its metrics, and Prometheus shows that they are missing.
        log.error(  # noqa: TRY400 # the stack says nothing more
            "metrics_not_served",
            host=options.metrics_host,
            port=options.metrics_port,
            error=error,
            action="the job goes on without metrics; free the port, or change GAMELAKE_METRICS_PORT",
        )
        yield
        return
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
