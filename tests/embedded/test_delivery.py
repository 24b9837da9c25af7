"""The copy of the topic in files is complete after a kill of the service, and is read without duplicates."""

import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zstandard
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.embedded.lakehouse import ROOT, Lakehouse
from tests.embedded.landing import Landing
from tests.embedded.sending import Sender
from tests.support.eventually import eventually
from tests.support.process_table import peak_mib
from tools.embedded.kafka import create_topic, delete_topic


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


@pytest.mark.slow
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
        # Kafka gives the partitions of a killed consumer to the next one after its session timeout, 15 s.
        eventually(lambda: committed(lakehouse, 2) == 502, timeout=180)

    landing.notify(*delivered(landing))
    lakehouse.ingest("ingest_files")
    assert lakehouse.event_ids() == Counter(ids)
    lakehouse.ingest()
    assert lakehouse.event_ids() == Counter(ids)
    assert lakehouse.reconciliation().problems == []


def test_unfinished_files_are_written_on_sigterm(lakehouse: Lakehouse, landing: Landing, sender: Sender) -> None:
    sender.send_events(50, "Archery")
    log = lakehouse.directory / "delivery.log"
    with delivering(lakehouse, GAMELAKE_DELIVERY_SECONDS="900"):
        eventually(lambda: log.read_text().count(" offset=0\n") == 2, timeout=180)
        assert delivered(landing) == []

    assert len(delivered(landing)) == 2


_PARTITIONS, _RECORDS, _BODY = 6, 10_000, 1_000
_LARGE = 5_000_000
# The container's limit (DELIVERY_MEMORY in compose/.env), less a sixth for what the peak leaves out.
_LIMIT_MIB = 120


@pytest.fixture
def backlog(lakehouse: Lakehouse) -> Iterator[Lakehouse]:
    """A topic of 10,000 records in each partition, one of 5 MB among them: more than twice what the service buffers."""
    lakehouse.topic = f"backlog-{uuid.uuid4().hex}"
    create_topic(lakehouse.bootstrap_servers, lakehouse.topic, _PARTITIONS, {"max.message.bytes": str(_LARGE + 1_000)})
    settings = {"bootstrap.servers": lakehouse.bootstrap_servers, "message.max.bytes": _LARGE + 1_000}
    producer = Producer(settings | {"compression.type": "zstd", "linger.ms": 100, "batch.size": 900_000})
    # Half of a body compresses well, half not at all.
    bodies = [b"\x00" * 6 + os.urandom(_BODY // 2) + b"level_completed " * (_BODY // 32) for _ in range(1_000)]
    for partition in range(_PARTITIONS):
        for number in range(_RECORDS):
            value = b"\x00" * 6 + os.urandom(_LARGE - 6) if number == _RECORDS // 2 else bodies[number % len(bodies)]
            while True:
                try:
                    producer.produce(lakehouse.topic, value, partition=partition)
                    break
                except BufferError:
                    producer.poll(0.1)
    assert producer.flush(120) == 0
    yield lakehouse
    delete_topic(lakehouse.bootstrap_servers, lakehouse.topic)


def committed(lakehouse: Lakehouse, partitions: int) -> int:
    """The sum of the offsets that the service's group has committed."""
    consumer = Consumer({"bootstrap.servers": lakehouse.bootstrap_servers, "group.id": lakehouse.topic})
    try:
        found = consumer.committed([TopicPartition(lakehouse.topic, each) for each in range(partitions)], timeout=20)
        return sum(max(each.offset, 0) for each in found)
    finally:
        consumer.close()


def records_of(file: Path) -> int:
    """The number of length-delimited messages of a file."""
    content, place, records = zstandard.ZstdDecompressor().decompressobj().decompress(file.read_bytes()), 0, 0
    while place < len(content):
        size, shift = 0, 0
        while True:
            byte, place = content[place], place + 1
            size, shift = size | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                break
        place, records = place + size, records + 1
    return records


@pytest.mark.slow
def test_a_backlog_of_an_hour_is_copied_within_the_containers_memory(backlog: Lakehouse) -> None:
    landing = Landing(backlog, backlog.topic)
    with delivering(backlog, GAMELAKE_DELIVERY_SECONDS="1") as process:
        eventually(lambda: committed(backlog, _PARTITIONS) == _PARTITIONS * _RECORDS, timeout=180)
        peak = peak_mib({process.pid})

    assert sum(records_of(landing.path / each) for each in delivered(landing)) == _PARTITIONS * _RECORDS
    assert peak < _LIMIT_MIB, f"{peak:.0f} MiB"
