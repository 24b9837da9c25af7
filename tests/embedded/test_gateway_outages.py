"""Kafka is slow, away, or its answers are lost: the gateway loses nothing that it accepted, and stays small."""

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass

import pytest

from tests.embedded.effort import outage_seconds
from tests.embedded.gateway import Gateway, Reply, body_of, events
from tests.embedded.kafka_proxy import KafkaProxy
from tests.embedded.parcels import packed
from tests.embedded.topic_records import ids_in
from tests.embedded.traffic import Traffic
from tests.eventually import eventually
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.kafka import create_topic
from tools.embedded.ports import HOST, free_port

TOPIC = "events"
PARTITIONS = 3
MOST_MIB = 400
# What an allocator may do with the same memory.
NOISE_MIB = 16
SENDERS = 24
LARGE_BATCH = 400
MANY_SENDERS, MOST_EVENTS = 80, 5000
LOST_ANSWERS = 10


@pytest.fixture(scope="module")
def proxy() -> Iterator[KafkaProxy]:
    """Where the broker seems to be."""
    with KafkaProxy(free_port(), free_port()).running() as running:
        yield running


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, registry: EmbeddedRegistry, proxy: KafkaProxy
) -> Iterator[EmbeddedKafka]:
    """A Kafka that tests may stop; it sends its clients to the proxy."""
    settings = {"advertised.listeners": f"PLAINTEXT://{HOST}:{proxy.port}"}
    with EmbeddedKafka(tmp_path_factory.mktemp("broker"), settings) as own:
        proxy.broker_port = int(own.bootstrap_servers.rpartition(":")[2])
        create_topic(own.bootstrap_servers, TOPIC, PARTITIONS)
        yield own


@pytest.fixture(scope="module")
def gateway(
    tmp_path_factory: pytest.TempPathFactory, broker: EmbeddedKafka, registry: EmbeddedRegistry
) -> Iterator[Gateway]:
    """The service before the broker."""
    opened = Gateway.open(
        tmp_path_factory.mktemp("gateway"),
        bootstrap_servers=broker.bootstrap_servers,
        registry_url=registry.url,
        topic=TOPIC,
        INGEST_KAFKA_SECONDS="3",
    )
    yield opened
    opened.process.stop()


@contextmanager
def paused(broker: EmbeddedKafka) -> Iterator[None]:
    """Have the broker stand still for as long as the block lasts."""
    os.kill(broker.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.process.pid, signal.SIGCONT)


def assert_kept(traffic: Traffic, broker: EmbeddedKafka) -> None:
    """What was accepted is there, and no event more often than it was sent."""
    found = ids_in(broker, TOPIC)
    assert set(traffic.accepted) <= found.keys()
    assert all(found[event_id] <= times for event_id, times in traffic.attempts.items())


def test_answers_of_kafka_that_are_lost_double_nothing(
    gateway: Gateway, broker: EmbeddedKafka, proxy: KafkaProxy
) -> None:
    batches = [events(20) for _ in range(LOST_ANSWERS)]

    for batch in batches:
        proxy.lose_answers(1)
        assert gateway.send(body_of(batch)).taken.accepted == len(batch)

    found = ids_in(broker, TOPIC)
    assert proxy.lost == LOST_ANSWERS
    assert {found[str(event["event_id"])] for batch in batches for event in batch} == {1}


def test_a_broker_that_stands_still_is_503_and_each_retry_the_same_event(
    gateway: Gateway, broker: EmbeddedKafka
) -> None:
    with Traffic(gateway, senders=4) as traffic:
        traffic.await_accepted(400)
        with paused(broker):
            standing_still = time.monotonic()
            eventually(
                lambda: traffic.statuses[503] > 0 and time.monotonic() > standing_still + outage_seconds(few=5),
                timeout=outage_seconds(few=5) + 30,
            )
        traffic.await_accepted(400)

    assert set(traffic.statuses) == {200, 503}
    assert_kept(traffic, broker)


def test_while_kafka_is_away_all_wait_in_bounded_memory_and_are_told_when_to_come_again(
    gateway: Gateway, broker: EmbeddedKafka
) -> None:
    broker.stop()
    not_ready = gateway.get("/readyz").status
    pressure = press(gateway, SENDERS, body_of(events(LARGE_BATCH)))
    broker.start()
    eventually(lambda: gateway.send(body_of(events(1))).status == 200, timeout=60)

    assert (not_ready, gateway.get("/readyz").status) == (503, 200)
    pressure.assert_bounded()


def test_while_the_vault_is_away_all_wait_in_bounded_memory_and_are_told_when_to_come_again(gateway: Gateway) -> None:
    # So well packed that all of them fit into what may be on its way.
    body = packed(body_of([events(1, gamer_id="somebody new")[0]] * MOST_EVENTS), "gzip")
    with closing(sqlite3.connect(gateway.service.vault_file, isolation_level=None)) as held:
        held.execute("BEGIN EXCLUSIVE")
        pressure = press(gateway, MANY_SENDERS, body, content_encoding="gzip")
    eventually(lambda: gateway.send(body_of(events(1))).status == 200, timeout=60)

    pressure.assert_bounded()


@dataclass(frozen=True, slots=True)
class Pressure:
    """What was answered to many who sent at once, and how much memory the service held from look to look, in MiB."""

    replies: list[Reply]
    held: list[float]
    peak: float

    def assert_bounded(self) -> None:
        """All were told to come again, in memory that has an end."""
        assert {reply.status for reply in self.replies} == {503}
        assert all(int(reply.headers["retry-after"]) >= 1 for reply in self.replies)
        assert self.peak < MOST_MIB
        half = len(self.held) // 2
        assert max(self.held[half:]) - max(self.held[:half]) < NOISE_MIB, self.held


def press(gateway: Gateway, senders: int, body: bytes, **headers: str) -> Pressure:
    """Have so many send a body again and again, for as long as an outage lasts."""
    ends = time.monotonic() + outage_seconds(few=8)
    held: list[float] = []

    def send() -> list[Reply]:
        return [gateway.send(body, **headers) for _ in iter(lambda: time.monotonic() < ends, False)]

    def look() -> bool:
        held.append(gateway.resident_mib())
        return time.monotonic() > ends

    with ThreadPoolExecutor(senders) as pool:
        pressing = [pool.submit(send) for _ in range(senders)]
        eventually(look, timeout=outage_seconds(few=8) + 60)
    return Pressure([reply for each in pressing for reply in each.result()], held, gateway.peak_mib())
