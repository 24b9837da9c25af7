"""The portal's pages open for an operator's certificate alone, and no request ends in an error of the server."""

import http.client
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.provision.certificates import CertificateDirectory
from services.provision.provisioning import ChangeLog
from tests.support.eventually import eventually
from tests.support.process_table import peak_mib
from tools.embedded.ports import HOST, accepts_connections, free_port
from tools.embedded.service import REPOSITORY

SERVICES = ("portal", "prometheus", "spark-worker", "trino")
SWITCH = "/faults/gateway-down/on"


class RunningPortal:
    """The portal with the faults to practise with, as the stack has it, and the authority's certificates."""

    def __init__(self, folder: Path) -> None:
        self._certificates = folder / "certificates"
        directory = CertificateDirectory(self._certificates, ChangeLog("certificates"))
        directory.update(SERVICES, datetime.now(UTC), clients=["operator"])
        self.port, self.browser_port = free_port(), free_port()
        self.process = subprocess.Popen(
            (sys.executable, "-m", "services.portal"),
            cwd=REPOSITORY,
            env={
                **os.environ,
                "PORTAL_PORT": str(self.port),
                "PORTAL_BROWSER_PORT": str(self.browser_port),
                "PORTAL_CERTIFICATE_FILE": str(self._certificates / "portal.pem"),
                "PORTAL_CA_FILE": str(self._certificates / "ca.pem"),
                "PORTAL_FAULTS": str(REPOSITORY / "monitoring/faults.yaml"),
                "PORTAL_SWITCHBOARD": str(folder / "nothing-listens"),
            },
        )

    def context(self, certificate: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._certificates / "ca.pem"))
        if certificate:
            context.load_cert_chain(self._certificates / f"{certificate}.pem")
        return context

    def status(self, certificate: str, path: str, method: str = "GET", **headers: str) -> int:
        connection = http.client.HTTPSConnection(HOST, self.port, timeout=30, context=self.context(certificate))
        try:
            connection.request(method, path, headers=headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def new_entry(self) -> str:
        """The path that opens the portal once."""
        connection = http.client.HTTPSConnection(HOST, self.port, timeout=30, context=self.context("operator"))
        try:
            connection.request("POST", "/entries")
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def browse(self, path: str, cookie: str = "", method: str = "GET", **headers: str) -> tuple[int, str]:
        """The status that a browser without a certificate gets, and the cookie that the response sets."""
        connection = http.client.HTTPConnection(HOST, self.browser_port, timeout=30)
        try:
            connection.request(method, path, headers={"Cookie": cookie, **headers})
            response = connection.getresponse()
            return response.status, (response.headers["set-cookie"] or "").partition(";")[0]
        finally:
            connection.close()

    def exchange(self, sent: bytes) -> bytes:
        """What an operator's connection gets for these bytes, until the portal closes it."""
        with (
            socket.create_connection((HOST, self.port), timeout=30) as plain,
            self.context("operator").wrap_socket(plain, server_hostname=HOST) as connection,
        ):
            connection.sendall(sent)
            received = b""
            while more := connection.recv(65_536):
                received += more
        return received


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    running = RunningPortal(tmp_path_factory.mktemp("portal"))
    try:
        eventually(lambda: accepts_connections(running.port), timeout=60)
        yield running
    finally:
        running.process.terminate()
        assert running.process.wait(20) == 0


def test_an_operator_opens_the_pages_and_may_switch(portal: RunningPortal) -> None:
    assert portal.status("operator", "/") == 200
    assert portal.status("operator", "/practice") == 200
    # It was let through: the program that switches does not run.
    assert portal.status("operator", SWITCH, "POST") == 503


@pytest.mark.parametrize("service", SERVICES)
def test_a_certificate_of_a_service_opens_no_page_and_switches_nothing(portal: RunningPortal, service: str) -> None:
    for path in ("/", "/status", "/practice", "/questions/retention", "/documents/", "/nothing"):
        assert portal.status(service, path) == 403
    assert portal.status(service, SWITCH, "POST") == 403
    assert portal.status(service, "/questions/retention", "POST") == 403


def test_health_and_metrics_are_open_for_services(portal: RunningPortal) -> None:
    assert portal.status("portal", "/healthz") == 200
    assert portal.status("prometheus", "/metrics") == 200


def test_an_address_opens_the_portal_for_one_browser_once(portal: RunningPortal) -> None:
    entry = portal.new_entry()

    entered, cookie = portal.browse(entry)

    assert entered == 303
    assert portal.browse("/practice", cookie) == (200, "")
    # It was let through: the program that switches does not run.
    assert portal.browse(SWITCH, cookie, "POST", Origin=f"http://{HOST}:{portal.browser_port}") == (503, "")
    assert portal.browse(entry) == (403, "")


def test_without_a_session_a_browser_sees_nothing(portal: RunningPortal) -> None:
    cookie = f"gamelake-portal-{portal.browser_port}=x"

    for path in ("/", "/metrics", "/entries", "/enter", "/enter?token=x", "/practice", "/documents/", "/nothing"):
        assert portal.browse(path) == portal.browse(path, cookie) == (403, "")
    assert portal.browse("/entries", cookie, "POST") == portal.browse(SWITCH, cookie, "POST") == (403, "")
    assert portal.browse("/healthz") == (200, "")


def test_only_the_operators_certificate_gets_an_address(portal: RunningPortal) -> None:
    assert portal.status("operator", "/entries", "POST") == 200
    assert portal.status("operator", "/entries") == 405
    assert portal.status("operator", "/entries", "POST", Origin="https://evil.example") == 403
    for service in SERVICES:
        assert portal.status(service, "/entries", "POST") == 403


def test_a_session_of_a_browser_switches_nothing_for_another_site(portal: RunningPortal) -> None:
    _, cookie = portal.browse(portal.new_entry())

    assert portal.browse(SWITCH, cookie, "POST", Origin="https://evil.example") == (403, "")
    assert portal.browse("/", cookie, Host="evil.example") == (421, "")


def test_without_a_certificate_there_is_no_response(portal: RunningPortal) -> None:
    with pytest.raises((OSError, http.client.HTTPException)):
        portal.status("", "/healthz")
    assert portal.status("operator", "/healthz") == 200


@pytest.mark.parametrize("host", ["[", "[::1", "a b", "evil.example", "", "127.0.0.1:x:y", "\u00ff"])
def test_a_host_that_is_not_the_portals_is_refused(portal: RunningPortal, host: str) -> None:
    assert portal.status("operator", "/", Host=host) == 421


@pytest.mark.parametrize("origin", ["http://[", "null", "https://evil.example"])
def test_an_origin_that_is_not_the_portals_switches_nothing(portal: RunningPortal, origin: str) -> None:
    assert portal.status("operator", SWITCH, "POST", Origin=origin) == 403


@pytest.mark.parametrize("target", ["//[", "/%00", "/%ff", "/documents/..%2f..%2fetc/passwd", "*", "/" + "a" * 9_000])
def test_no_target_is_an_error_of_the_server(portal: RunningPortal, target: str) -> None:
    reply = portal.exchange(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())

    assert 400 <= int(reply.split()[1]) < 500


def test_a_body_is_not_taken_for_the_next_request(portal: RunningPortal) -> None:
    hidden = f"POST {SWITCH} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    head = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(hidden)}\r\n\r\n"

    assert portal.exchange((head + hidden).encode()).count(b"HTTP/1.1 ") == 1


# The container has 128 MiB (PORTAL_MEMORY in compose/.env), and the result of a question takes memory, too.
BUDGET_MIB, AT_ONCE, REQUESTS = 80, 32, 200


def test_many_readers_of_the_pages_leave_memory_of_the_container_for_results(portal: RunningPortal) -> None:
    pages = ("/", "/status", "/tiles", "/questions", "/practice", "/metrics")

    with ThreadPoolExecutor(AT_ONCE) as readers:
        statuses = set(readers.map(lambda n: portal.status("operator", pages[n % len(pages)]), range(REQUESTS)))

    assert statuses == {200}
    assert peak_mib({portal.process.pid}) < BUDGET_MIB
