"""Kafka is slow or away, or its responses are lost: the gateway loses no accepted event, in bounded memory."""

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
from tests.embedded.fuzzed_requests import compressed
from tests.embedded.gateway import Gateway, Reply, body_of, events
from tests.embedded.kafka_proxy import KafkaProxy
from tests.embedded.topic_records import ids_in
from tests.embedded.traffic import Traffic
from tests.support.eventually import eventually
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.kafka import create_topic
from tools.embedded.ports import HOST, free_port

TOPIC = "events"
PARTITIONS = 3
MOST_MIB = 400
# Differences that the allocator causes.
NOISE_MIB = 16
SENDERS = 24
LARGE_BATCH = 400
MANY_SENDERS, MOST_EVENTS = 80, 5000
LOST_RESPONSES = 10


@pytest.fixture(scope="module")
def proxy() -> Iterator[KafkaProxy]:
    """The proxy that clients take for the broker."""
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
    """The service that writes to the broker."""
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
    """Suspend the broker while the block runs."""
    os.kill(broker.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.process.pid, signal.SIGCONT)


def assert_complete(traffic: Traffic, broker: EmbeddedKafka) -> None:
    """All accepted events are there, and no event more often than it was sent."""
    found = ids_in(broker, TOPIC)
    assert set(traffic.accepted) <= found.keys()
    assert all(found[event_id] <= times for event_id, times in traffic.attempts.items())


@pytest.mark.slow
def test_lost_responses_of_kafka_cause_no_duplicates(
    gateway: Gateway, broker: EmbeddedKafka, proxy: KafkaProxy
) -> None:
    batches = [events(20) for _ in range(LOST_RESPONSES)]

    for batch in batches:
        proxy.lose_responses(1)
        assert gateway.send(body_of(batch)).result.accepted == len(batch)

    found = ids_in(broker, TOPIC)
    assert proxy.lost == LOST_RESPONSES
    assert {found[str(event["event_id"])] for batch in batches for event in batch} == {1}


def test_a_suspended_broker_is_503_and_a_retry_is_no_new_event(gateway: Gateway, broker: EmbeddedKafka) -> None:
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
    assert_complete(traffic, broker)


def test_while_kafka_is_away_requests_get_503_with_retry_after_in_bounded_memory(
    gateway: Gateway, broker: EmbeddedKafka
) -> None:
    broker.stop()
    not_ready = gateway.get("/readyz").status
    pressure = press(gateway, SENDERS, body_of(events(LARGE_BATCH)))
    broker.start()
    eventually(lambda: gateway.send(body_of(events(1))).status == 200, timeout=60)

    assert (not_ready, gateway.get("/readyz").status) == (503, 200)
    pressure.assert_bounded()


@pytest.mark.slow
def test_while_the_vault_is_away_requests_get_503_with_retry_after_in_bounded_memory(gateway: Gateway) -> None:
    # Compressed so well that all bodies fit into the limit of bodies in flight.
    body = compressed(body_of([events(1, gamer_id="new player")[0]] * MOST_EVENTS), "gzip")
    with closing(sqlite3.connect(gateway.service.vault_file, isolation_level=None)) as held:
        held.execute("BEGIN EXCLUSIVE")
        pressure = press(gateway, MANY_SENDERS, body, content_encoding="gzip")
    eventually(lambda: gateway.send(body_of(events(1))).status == 200, timeout=60)

    pressure.assert_bounded()


@dataclass(frozen=True, slots=True)
class Pressure:
    """The responses to many concurrent senders, and samples of the service's memory in MiB."""

    replies: list[Reply]
    held: list[float]
    peak: float

    def assert_bounded(self) -> None:
        """All senders got 503 and `retry-after`, and the memory was bounded."""
        assert {reply.status for reply in self.replies} == {503}
        assert all(int(reply.headers["retry-after"]) >= 1 for reply in self.replies)
        assert self.peak < MOST_MIB
        half = len(self.held) // 2
        assert max(self.held[half:]) - max(self.held[:half]) < NOISE_MIB, self.held


def press(gateway: Gateway, senders: int, body: bytes, **headers: str) -> Pressure:
    """Let `senders` threads send a body repeatedly while an outage lasts."""
    ends = time.monotonic() + outage_seconds(few=8)
    held: list[float] = []

    def send() -> list[Reply]:
        return [gateway.send(body, **headers) for _ in iter(lambda: time.monotonic() < ends, False)]

    def sample() -> bool:
        held.append(gateway.resident_mib())
        return time.monotonic() > ends

    with ThreadPoolExecutor(senders) as pool:
        pressing = [pool.submit(send) for _ in range(senders)]
        eventually(sample, timeout=outage_seconds(few=8) + 60)
    return Pressure([reply for each in pressing for reply in each.result()], held, gateway.peak_mib())
