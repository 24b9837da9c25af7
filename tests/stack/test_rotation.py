"""Secrets and certificates are replaced while games send; no accepted event is lost."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from cryptography import x509

from tests.stack.game import Game, an_event
from tests.stack.platform import ROOT, SECRETS, Stack
from tests.stack.prometheus import Prometheus
from tests.support.eventually import eventually
from tools.stack import AUTHORITY, is_encrypted


@contextmanager
def sending(game: Game) -> Iterator[None]:
    """Send events, each until it is acknowledged, for the time of the block."""
    stop = threading.Event()

    def send() -> None:
        while not stop.wait(0.1):
            game.post_until_taken([an_event(), an_event()])

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(180)
    assert not thread.is_alive()


def rotate(*arguments: str) -> None:
    command = (str(ROOT / "compose/rotate.sh"), *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def issued_at(service: str) -> datetime:
    text = (AUTHORITY.parent / f"{service}.pem").read_bytes()
    return x509.load_pem_x509_certificate(text).not_valid_before_utc


@pytest.mark.slow
def test_a_password_and_certificates_are_replaced_under_load_and_no_event_is_lost(stack: Stack) -> None:
    if not is_encrypted():
        pytest.skip("TLS=0")
    for service in ("ingest", "ingest-events"):
        stack.await_health(service)
    game, password, began = Game.of("archery_duel"), (SECRETS / "kafka-ingest").read_text(), datetime.now(UTC)
    with sending(game):
        rotate("kafka-ingest")
        rotate("certificates", "kafka", "ingest")

    assert (SECRETS / "kafka-ingest").read_text() != password
    assert all((began - issued_at(service)).total_seconds() < 3_600 for service in ("kafka", "ingest"))
    assert len(game.acknowledged) > 0
    eventually(lambda: game.acknowledged <= stack.event_ids().keys(), timeout=180)
    found = stack.event_ids()
    assert all(found[each] == 1 for each in game.acknowledged)


SERVED = 'probe_ssl_earliest_cert_expiry{instance="alert-receiver:9094"}'
ISSUED = 'gamelake_certificate_issued_expiry_timestamp_seconds{service="alert-receiver"}'


def test_a_renewed_certificate_that_is_not_served_yet_is_noticed(stack: Stack) -> None:
    if not is_encrypted():
        pytest.skip("TLS=0")

    prometheus = Prometheus()

    def is_served() -> bool:
        return prometheus.values(f"{SERVED} == on () {ISSUED}") != []

    eventually(is_served, timeout=180)

    (AUTHORITY.parent / "alert-receiver.pem").unlink()
    subprocess.run((str(ROOT / "compose/certificates.sh"),), check=True, capture_output=True, timeout=120)

    pending = 'ALERTS{alertname="CertificateNotServed", instance="alert-receiver:9094", alertstate="pending"}'
    eventually(lambda: prometheus.values(pending) != [], timeout=180)

    stack.compose("restart", "alert-receiver")

    eventually(is_served, timeout=180)
    eventually(lambda: prometheus.values(pending) == [], timeout=180)
