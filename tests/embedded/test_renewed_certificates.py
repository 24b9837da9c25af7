"""A renewed certificate is served without a restart, and no request is lost to the renewal."""

import shutil
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from cryptography import x509

from services.provision.certificates import CertificateDirectory
from services.provision.provisioning import ChangeLog
from tests.embedded.gateway import Gateway, body_of, events
from tests.support.eventually import eventually
from tools.embedded.ports import HOST, accepts_connections, free_port


def renew(directory: Path, *services: str) -> None:
    """Issue the certificates of these services again."""
    CertificateDirectory(directory, ChangeLog("certificates")).update(services, datetime.now(UTC), renew=True)


def serves_what_was_issued(port: int, certificate: Path) -> bool:
    """Return True if a port serves the certificate in a file."""
    served = x509.load_pem_x509_certificate(ssl.get_server_certificate((HOST, port), timeout=10).encode())
    return served == x509.load_pem_x509_certificate(certificate.read_bytes())


def test_the_gateway_serves_a_renewed_certificate_without_a_restart(
    open_gateway: Callable[..., Gateway], tmp_path: Path
) -> None:
    directory = tmp_path / "certificates"
    renew(directory, "ingest")
    gateway = open_gateway(certificates=directory)
    process, ended, statuses = gateway.process.pid, threading.Event(), Counter[int]()

    def send() -> None:
        while not ended.wait(0.05):
            try:
                statuses[gateway.send(body_of(events(1))).status] += 1
            except OSError:
                # A connection that the ending process had not accepted yet: the SDK sends the request again.
                statuses[0] += 1

    sender = threading.Thread(target=send)
    sender.start()
    try:
        renew(directory, "ingest")
        eventually(lambda: serves_what_was_issued(gateway.port, directory / "ingest.pem"), timeout=60)
        eventually(lambda: b"Stopped old worker-1" in gateway.log(), timeout=60)
    finally:
        ended.set()
        sender.join()

    assert gateway.process.pid == process
    assert statuses.keys() <= {200, 0}
    assert statuses[0] <= 1
    assert b"gamelake_ingest_events_accepted_total" in gateway.metrics()
    gateway.process.stop()


def test_prometheus_serves_a_renewed_certificate_without_a_restart(
    tmp_path: Path, missing_service: Callable[[str], NoReturn]
) -> None:
    program = shutil.which("prometheus") or missing_service("prometheus is missing")
    directory, port = tmp_path / "certificates", free_port()
    renew(directory, "prometheus")
    file = directory / "prometheus.pem"
    (tmp_path / "web.yml").write_text(f"tls_server_config: {{cert_file: {file}, key_file: {file}}}\n")
    (tmp_path / "prometheus.yml").write_text("global: {}\n")
    options = (f"--web.listen-address={HOST}:{port}", "--web.config.file=web.yml", "--storage.tsdb.path=data")
    running = subprocess.Popen((str(program), "--config.file=prometheus.yml", *options), cwd=tmp_path)
    try:
        eventually(lambda: accepts_connections(port), timeout=60)
        assert serves_what_was_issued(port, file)

        renew(directory, "prometheus")

        assert serves_what_was_issued(port, file)
    finally:
        running.terminate()
        running.wait(30)
