"""The metrics endpoint by TLS: readers need a certificate of the same authority."""

import socket
import ssl
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry, Counter

from gamelake.model.options import EndpointTls
from gamelake.observability.metrics.endpoint import serve_metrics
from services.provision.certificates import CertificateDirectory
from services.provision.provisioning import ChangeLog
from tools.embedded.ports import HOST


def certificates(directory: Path, *services: str) -> Path:
    """Make an authority, and certificates for services."""
    CertificateDirectory(directory, ChangeLog("certificates")).update(services, datetime.now(UTC))
    return directory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The certificates of the endpoint and of Prometheus."""
    return certificates(tmp_path / "certificates", "delivery", "prometheus")


@pytest.fixture
def endpoint(directory: Path) -> Iterator[str]:
    """The URL of an endpoint with one counter."""
    registry = CollectorRegistry()
    Counter("records", "Records.", registry=registry).inc(3)
    tls = EndpointTls(certificate=directory / "delivery.pem", clients=directory / "ca.pem")
    server, thread = serve_metrics(registry, HOST, 0, tls)
    yield f"https://{HOST}:{server.server_port}/metrics"
    server.shutdown()
    server.server_close()
    thread.join()


def read(url: str, authority: Path, certificate: Path | None = None) -> str:
    context = ssl.create_default_context(cafile=str(authority))
    if certificate is not None:
        context.load_cert_chain(certificate)
    with urllib.request.urlopen(url, timeout=10, context=context) as answer:  # noqa: S310 # on this machine
        return str(answer.read().decode())


def test_a_reader_with_a_certificate_of_the_authority_reads_the_metrics(endpoint: str, directory: Path) -> None:
    assert "records_total 3.0" in read(endpoint, directory / "ca.pem", directory / "prometheus.pem")


def test_a_reader_without_a_certificate_reads_nothing(endpoint: str, directory: Path) -> None:
    with pytest.raises((URLError, OSError)):
        read(endpoint, directory / "ca.pem")


def test_a_reader_with_the_certificate_of_another_authority_reads_nothing(
    endpoint: str, directory: Path, tmp_path: Path
) -> None:
    others = certificates(tmp_path / "others", "prometheus")

    with pytest.raises((URLError, OSError)):
        read(endpoint, directory / "ca.pem", others / "prometheus.pem")


def test_a_reader_in_the_clear_reads_nothing(endpoint: str) -> None:
    with pytest.raises((URLError, OSError)):
        urllib.request.urlopen(endpoint.replace("https:", "http:"), timeout=10)  # noqa: S310 # as above


def test_a_connection_that_sends_nothing_delays_no_reader(endpoint: str, directory: Path) -> None:
    with socket.create_connection((HOST, urlsplit(endpoint).port or 0)):
        assert "records_total" in read(endpoint, directory / "ca.pem", directory / "prometheus.pem")
