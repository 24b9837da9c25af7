"""Serves metrics over HTTP while the process works."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from wsgiref.simple_server import WSGIServer

from cryptography import x509
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector, start_http_server

from gamelake.model.logs import event_logger
from gamelake.model.options import EndpointTls, TelemetryOptions
from gamelake.observability.metrics.best_effort import harmless
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

CERTIFICATE_EXPIRY = "gamelake_certificate_expiry_timestamp_seconds"


def registry_of_process() -> CollectorRegistry:
    """A new registry with memory, processor time and start of this Python, and the memory of its container."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(ContainerMemoryCollector())
    return registry


def export_certificate_expiry(registry: CollectorRegistry, tls: EndpointTls) -> None:
    """Add to a registry when the certificate of the endpoint that serves it expires.

    Raises:
        OSError: the certificate can't be read.
    """
    expiry = Gauge(CERTIFICATE_EXPIRY, "When the certificate of this endpoint expires.", registry=registry)
    certificate = x509.load_pem_x509_certificate(tls.certificate.read_bytes())
    expiry.set(certificate.not_valid_after_utc.timestamp())


def serve_metrics(
    registry: CollectorRegistry, host: str, port: int, tls: EndpointTls | None
) -> tuple[WSGIServer, Thread]:
    """Serve the metrics of a registry under `/metrics` in a thread; gives the server and its thread.

    By TLS also when the endpoint's certificate expires.

    Raises:
        OSError: the port is taken.
    """
    if tls is None:
        return start_http_server(port, host, registry)
    export_certificate_expiry(registry, tls)
    server, thread = start_http_server(
        port,
        host,
        registry,
        certfile=str(tls.certificate),
        keyfile=str(tls.certificate),
        client_cafile=str(tls.clients),
        client_auth_required=True,
    )
    # Handshakes belong to the connections' threads: a client that sends nothing would block all others.
    server.socket.do_handshake_on_connect = False  # type: ignore[attr-defined] # it is an SSLSocket
    return server, thread


@contextmanager
def served(registry: CollectorRegistry, options: TelemetryOptions) -> Iterator[None]:
    """Serve the metrics of a registry until the end of the block, if the options ask for them."""
    if options.metrics_port is None:
        yield
        return
    try:
        server, thread = serve_metrics(registry, options.metrics_host, options.metrics_port, options.metrics_tls)
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
