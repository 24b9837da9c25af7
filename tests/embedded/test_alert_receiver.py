"""The alert receiver as Alertmanager meets it: a process with a port and a file."""

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

import pytest

from services.alert_receiver.server import MOST_BYTES
from services.provision.certificates import CertificateDirectory
from services.provision.provisioning import ChangeLog
from tests.support.eventually import eventually
from tests.support.process_table import peak_mib
from tools.embedded.ports import HOST, accepts_connections, free_port

REPOSITORY = Path(__file__).parents[2]
AN_ALERT = {
    "status": "firing",
    "labels": {"alertname": "StreamQueryDown"},
    "annotations": {},
    "startsAt": "2026-09-01T11:59:30Z",
    "endsAt": "0001-01-01T00:00:00Z",
}


# The signal comes when the server has created the thread of a connection and not yet started it.
_SIGTERM_BEFORE_EACH_THREAD = """
import os, signal, threading
start = threading.Thread.start
def start_after_sigterm(thread):
    os.kill(os.getpid(), signal.SIGTERM)
    start(thread)
threading.Thread.start = start_after_sigterm
from gamelake.program import run
from services.alert_receiver.__main__ import main
run(main)
"""


class RunningReceiver:
    """A receiver of the test's own."""

    def __init__(self, file: Path, program: Sequence[str] = ("-m", "services.alert_receiver"), **tls: Path) -> None:
        self.file, self.port = file, free_port()
        settings = {"ALERT_RECEIVER_FILE": str(file), "ALERT_RECEIVER_HOST": HOST}
        settings |= {f"ALERT_RECEIVER_{name}_FILE": str(path) for name, path in tls.items()}
        self.process = subprocess.Popen(
            (sys.executable, *program),
            cwd=REPOSITORY,
            # As in the container: a thread's own pool of memory would keep what a notification took.
            env={**os.environ, **settings, "ALERT_RECEIVER_PORT": str(self.port), "MALLOC_ARENA_MAX": "1"},
        )

    def ask(self, method: str, path: str, body: bytes | None = None) -> int:
        connection = HTTPConnection(HOST, self.port, timeout=60)
        try:
            connection.request(method, path, body)
            return connection.getresponse().status
        finally:
            connection.close()

    def status_of(self, head: str) -> int:
        """The status of a request of which only the head is sent."""
        connection = HTTPConnection(HOST, self.port, timeout=10)
        connection.connect()
        try:
            connection.sock.sendall(head.replace("\n", "\r\n").encode())
            with connection.sock.makefile("rb") as answer:
                return int(answer.readline().split()[1])
        finally:
            connection.close()


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[RunningReceiver]:
    running = RunningReceiver(tmp_path / "alerts.jsonl")
    try:
        eventually(lambda: accepts_connections(running.port))
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def test_an_alert_that_was_acknowledged_is_in_the_file(receiver: RunningReceiver) -> None:
    assert receiver.ask("POST", "/alerts", json.dumps({"alerts": [AN_ALERT, AN_ALERT]}).encode()) == 200

    receiver.process.kill()
    lines = [json.loads(line) for line in receiver.file.read_text().splitlines()]
    assert [line["alertname"] for line in lines] == ["StreamQueryDown", "StreamQueryDown"]


def test_it_reports_that_it_is_healthy(receiver: RunningReceiver) -> None:
    assert receiver.ask("GET", "/healthz") == 200
    assert receiver.ask("GET", "/else") == 404
    assert receiver.ask("POST", "/else", b"{}") == 404


def test_what_it_can_not_take_is_refused_and_leaves_no_line(receiver: RunningReceiver) -> None:
    assert receiver.ask("POST", "/alerts", b"no JSON") == 400
    assert receiver.status_of("POST /alerts HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n") == 411
    assert receiver.status_of(f"POST /alerts HTTP/1.1\nHost: a\nContent-Length: {MOST_BYTES + 1}\n\n") == 413

    assert not receiver.file.exists()
    assert receiver.ask("GET", "/healthz") == 200


def test_a_disk_that_fails_makes_alertmanager_try_again(receiver: RunningReceiver) -> None:
    receiver.file.mkdir()
    body = json.dumps({"alerts": [AN_ALERT]}).encode()
    assert receiver.ask("POST", "/alerts", body) == 500

    receiver.file.rmdir()
    assert receiver.ask("POST", "/alerts", body) == 200


# The limit of the container (ALERT_RECEIVER_MEMORY in compose/.env).
LIMIT_MIB, AT_ONCE = 48, 8


def test_large_notifications_at_once_take_less_memory_than_the_container_has(receiver: RunningReceiver) -> None:
    body = json.dumps({"alerts": [AN_ALERT] * 13_000}).encode()
    assert MOST_BYTES * 0.9 < len(body) < MOST_BYTES

    with ThreadPoolExecutor(AT_ONCE) as pool:
        statuses = set(pool.map(lambda _: receiver.ask("POST", "/alerts", body), range(AT_ONCE)))

    # Alertmanager sends again what got 503.
    assert statuses <= {200, 503}
    assert peak_mib({receiver.process.pid}) < LIMIT_MIB


def test_sigterm_ends_it_in_good_order(receiver: RunningReceiver) -> None:
    receiver.process.send_signal(signal.SIGTERM)

    assert receiver.process.wait(timeout=15) == 0


def test_sigterm_while_a_connection_gets_its_thread_ends_it_in_good_order(tmp_path: Path) -> None:
    receiver = RunningReceiver(tmp_path / "alerts.jsonl", ("-c", _SIGTERM_BEFORE_EACH_THREAD))
    try:
        eventually(lambda: accepts_connections(receiver.port))

        assert receiver.process.wait(timeout=15) == 0
    finally:
        receiver.process.kill()
        receiver.process.wait()


def test_only_alertmanager_can_send_alerts(tmp_path: Path) -> None:
    certificates = tmp_path / "certificates"
    names = ("alert-receiver", "alertmanager", "spark-worker")
    CertificateDirectory(certificates, ChangeLog("certificates")).update(names, datetime.now(UTC))
    files = {"CERTIFICATE": certificates / "alert-receiver.pem", "CA": certificates / "ca.pem"}
    receiver = RunningReceiver(tmp_path / "alerts.jsonl", CERTIFICATE=files["CERTIFICATE"], CA=files["CA"])

    def sent_by(name: str) -> int:
        context = ssl.create_default_context(cafile=str(files["CA"]))
        context.load_cert_chain(certificates / f"{name}.pem")
        with closing(HTTPSConnection(HOST, receiver.port, timeout=10, context=context)) as connection:
            connection.request("POST", "/alerts", json.dumps({"alerts": [AN_ALERT]}))
            return connection.getresponse().status

    try:
        eventually(lambda: accepts_connections(receiver.port))

        assert sent_by("spark-worker") == 403
        assert not receiver.file.exists()
        assert sent_by("alertmanager") == 200
    finally:
        receiver.process.kill()
        receiver.process.wait()
