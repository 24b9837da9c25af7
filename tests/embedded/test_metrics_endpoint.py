"""The metrics endpoint by TLS: readers need a certificate of the same authority."""

import re
import socket
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from prometheus_client import CollectorRegistry, Counter

from gamelake.model.options import EndpointTls, TelemetryOptions
from gamelake.observability.metrics.endpoint import MetricsServer
from services.provision.certificates import CertificateDirectory
from services.provision.provisioning import ChangeLog
from tests.support.eventually import eventually
from tools.embedded.ports import HOST


def certificates(directory: Path, *services: str) -> Path:
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
    server = MetricsServer(registry, TelemetryOptions(metrics_port=0, metrics_host=HOST, metrics_tls=tls))
    server.start()
    yield f"https://{HOST}:{server.server_port}/metrics"
    server.stop()


def port_of(url: str) -> int:
    return urlsplit(url).port or 0


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


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01"], ids=["nothing", "half of a handshake"])
def test_connections_that_send_nothing_are_closed_and_hold_no_thread(endpoint: str, sent: bytes) -> None:
    before = threading.active_count()
    with ExitStack() as held:
        silent = [held.enter_context(socket.create_connection((HOST, port_of(endpoint)), 30)) for _ in range(100)]
        for each in silent:
            each.sendall(sent)

        assert [each.recv(1) for each in silent] == [b""] * len(silent)
        eventually(lambda: threading.active_count() <= before, timeout=10)


def test_a_connection_that_sends_nothing_delays_no_reader(endpoint: str, directory: Path) -> None:
    with socket.create_connection((HOST, port_of(endpoint))):
        assert "records_total" in read(endpoint, directory / "ca.pem", directory / "prometheus.pem")


def served_certificate(url: str) -> x509.Certificate:
    """Return the certificate that the endpoint's port serves."""
    return x509.load_pem_x509_certificate(ssl.get_server_certificate((HOST, port_of(url)), timeout=10).encode())


def certificate_in(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.read_bytes())


def test_a_renewed_certificate_is_served_without_a_restart(endpoint: str, directory: Path) -> None:
    before = served_certificate(endpoint)
    later = datetime.now(UTC) + timedelta(minutes=30)

    CertificateDirectory(directory, ChangeLog("certificates")).update(["delivery"], later, renew=True)

    renewed = certificate_in(directory / "delivery.pem")
    assert renewed.serial_number != before.serial_number
    assert served_certificate(endpoint) == renewed
    page = read(endpoint, directory / "ca.pem", directory / "prometheus.pem")
    expiry = re.search(r"^gamelake_certificate_expiry_timestamp_seconds (.+)$", page, re.MULTILINE)
    assert expiry is not None
    assert float(expiry[1]) == renewed.not_valid_after_utc.timestamp()


def test_the_last_good_certificate_is_served_while_the_file_is_damaged(endpoint: str, directory: Path) -> None:
    file, before = directory / "delivery.pem", served_certificate(endpoint)
    file.unlink()
    file.write_text("-----BEGIN CERTIFICATE-----")

    assert served_certificate(endpoint) == before
    assert "records_total" in read(endpoint, directory / "ca.pem", directory / "prometheus.pem")
