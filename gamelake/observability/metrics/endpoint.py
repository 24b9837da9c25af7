"""Serves metrics over HTTP while the process works."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from prometheus_client import CollectorRegistry, MetricsHandler, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from gamelake.http_server import HttpHandler, HttpServer
from gamelake.model.logs import event_logger
from gamelake.model.observers import harmless
from gamelake.model.options import TelemetryOptions
from gamelake.observability.metrics import declared
from gamelake.observability.metrics.container import ContainerMemoryCollector


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
    """Create a registry with memory, processor time and start of this Python, and the memory of its container."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(ContainerMemoryCollector())
    return registry


class CertificateExpiryCollector(Collector):
    """The expiry of the certificate that a server serves at present; nothing without TLS."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the gauge, or none."""
        if expires := self._server.certificate_expires:
            family = declared.gauge_family("gamelake_certificate_expiry_timestamp_seconds")
            family.add_metric((), expires.timestamp())
            yield family


class _MetricsHandler(HttpHandler, MetricsHandler):
    timeout = 5


class MetricsServer(HttpServer):
    """Serves the metrics of a registry under `/metrics`; by TLS also when the endpoint's certificate expires.

    Args:
        registry: the metrics.
        options: `metrics_port` 0 takes any that is free.
        shares_port: other processes of the user may serve their metrics at this port, too.

    Raises:
        OSError: the port is taken.
        SettingsError: the certificate can't be read.
    """

    def __init__(self, registry: CollectorRegistry, options: TelemetryOptions, *, shares_port: bool = False) -> None:
        address = (options.metrics_host, options.metrics_port or 0)
        super().__init__(address, _MetricsHandler.factory(registry), options.metrics_tls, shares_port=shares_port)
        registry.register(CertificateExpiryCollector(self))
        self._thread = Thread(target=self.serve_forever, name="metrics", daemon=True)

    def start(self) -> None:
        """Serve in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and free the port."""
        self.shutdown()
        self.server_close()
        self._thread.join()


@contextmanager
def served(registry: CollectorRegistry, options: TelemetryOptions, *, shares_port: bool = False) -> Iterator[None]:
    """Serve the metrics of a registry until the end of the block, if the options ask for them."""
    if options.metrics_port is None:
        yield
        return
    try:
        server = MetricsServer(registry, options, shares_port=shares_port)
    except OSError as error:
        # The work is worth more than its metrics, and Prometheus shows that they are missing.
        log.error(  # noqa: TRY400 # the stack says nothing more
            "metrics_not_served",
            host=options.metrics_host,
            port=options.metrics_port,
            error=error,
            action="the job continues without metrics; free the port, or change GAMELAKE_METRICS_PORT",
        )
        yield
        return
    server.start()
    try:
        yield
    finally:
        server.stop()
