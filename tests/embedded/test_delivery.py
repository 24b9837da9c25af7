"""The copy of the topic in files is complete after a kill of the service, and is read without duplicates."""

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.embedded.lakehouse import ROOT, Lakehouse
from tests.embedded.landing import Landing
from tests.embedded.sending import Sender
from tests.eventually import eventually


@pytest.fixture
def landing(lakehouse: Lakehouse, topic: Callable[[int], str]) -> Landing:
    return Landing(lakehouse, topic(2))


@contextmanager
def delivering(lakehouse: Lakehouse, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**lakehouse.environment(), "GAMELAKE_DELIVERY_GROUP": lakehouse.topic, **settings}
    log = (lakehouse.directory / "delivery.log").open("ab")
    process = subprocess.Popen(
        [sys.executable, "-m", "services.delivery"], cwd=ROOT, env=environment, stdout=log, stderr=log
    )
    try:
        yield process
        process.terminate()
        assert process.wait(60) in (0, -signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
        log.close()


def delivered(landing: Landing) -> list[str]:
    return sorted(path.relative_to(landing.path).as_posix() for path in landing.path.rglob("*.zst"))


def test_all_events_are_in_files_though_the_service_is_killed(
    lakehouse: Lakehouse, landing: Landing, sender: Sender
) -> None:
    ids = sender.send_events(300, "Archery")
    sender.send_bad([b"no frame", None])
    with delivering(lakehouse, GAMELAKE_DELIVERY_SECONDS="0.5") as killed:
        eventually(lambda: len(delivered(landing)) >= 1, timeout=180)
        killed.kill()
    ids += sender.send_events(200, "Bingo")
    with delivering(lakehouse, GAMELAKE_DELIVERY_SECONDS="0.5"):
        # Kafka gives the partitions of a killed consumer to the next one after its session timeout, 45 s.
        eventually(lambda: len(delivered(landing)) >= 4, timeout=180)

    landing.notify(*delivered(landing))
    job = lakehouse.start("--available-now", job="ingest_files")
    assert job.wait() == 0, job.log_text()[-3000:]
    assert lakehouse.event_ids() == Counter(ids)
    lakehouse.ingest()
    assert lakehouse.event_ids() == Counter(ids)
    assert lakehouse.reconciliation().problems == []


def test_unfinished_files_are_written_on_sigterm(lakehouse: Lakehouse, landing: Landing, sender: Sender) -> None:
    sender.send_events(50, "Archery")
    log = lakehouse.directory / "delivery.log"
    with delivering(lakehouse, GAMELAKE_DELIVERY_SECONDS="900"):
        eventually(lambda: log.read_text().count("at offset 0") == 2, timeout=180)
        assert delivered(landing) == []

    assert len(delivered(landing)) == 2
