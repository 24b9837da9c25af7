"""SIGKILL of the gateway and of Kafka under load, repeatedly: the tables have each accepted event once."""

import random
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.embedded.effort import seeds
from tests.embedded.gateway import Gateway
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.topic_records import ids_in
from tests.embedded.traffic import Traffic
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.kafka import create_topic

TOPIC = "events"
PARTITIONS = 3
SENDERS = 4
MAX_LIFE_SECONDS = 0.6
Kill = Callable[[EmbeddedKafka, Gateway], None]


@pytest.fixture
def broker(tmp_path: Path, registry: EmbeddedRegistry) -> Iterator[EmbeddedKafka]:
    """A Kafka that may be killed."""
    with EmbeddedKafka(tmp_path / "kafka") as own:
        create_topic(own.bootstrap_servers, TOPIC, PARTITIONS)
        yield own


@pytest.fixture
def gateway(tmp_path: Path, broker: EmbeddedKafka, registry: EmbeddedRegistry) -> Iterator[Gateway]:
    """The service that writes to it."""
    opened = Gateway.open(
        tmp_path / "gateway",
        bootstrap_servers=broker.bootstrap_servers,
        registry_url=registry.url,
        topic=TOPIC,
        INGEST_KAFKA_SECONDS="3",
    )
    yield opened
    opened.process.stop()


def kill_service(_broker: EmbeddedKafka, gateway: Gateway) -> None:
    """Crash the service, and start it again."""
    gateway.process.kill()
    gateway.restart()


def kill_broker(broker: EmbeddedKafka, _gateway: Gateway) -> None:
    """Crash Kafka, and start it again."""
    broker.kill()
    broker.start()


@pytest.mark.parametrize(
    ("kill", "few"),
    [
        pytest.param(kill_service, 3, marks=pytest.mark.slow),
        pytest.param(kill_service, 6, marks=pytest.mark.slow),
        pytest.param(kill_broker, 3, marks=pytest.mark.slow),
    ],
)
def test_accepted_events_are_in_silver_once_after_kills_of_gateway_or_kafka(
    tmp_path: Path, broker: EmbeddedKafka, registry: EmbeddedRegistry, gateway: Gateway, kill: Kill, few: int
) -> None:
    accepted_before: list[int] = []
    with Traffic(gateway, SENDERS) as traffic:
        traffic.await_accepted(1)
        for seed in seeds(few):
            accepted_before.append(len(traffic.accepted))
            _wait(random.Random(seed).uniform(0, MAX_LIFE_SECONDS))
            kill(broker, gateway)
            traffic.await_accepted(1)
        traffic.await_accepted(100)
    accepted_before.append(len(traffic.accepted))

    found = ids_in(broker, TOPIC)
    lake = Lakehouse(tmp_path / "lake", broker.bootstrap_servers, registry.url, TOPIC)
    lake.ingest()
    reconciliation, rows = lake.reconciliation(), lake.event_ids()

    lives = enumerate(pairwise(accepted_before))
    lost = {seed: [each for each in traffic.accepted[since:until] if rows[each] != 1] for seed, (since, until) in lives}
    assert not any(lost.values()), f"accepted and not one row, by the seed of the kill that came next: {lost}"
    assert traffic.attempts.keys() >= found.keys() == rows.keys()
    assert all(times <= traffic.attempts[event_id] for event_id, times in found.items())
    assert reconciliation.problems == []
    assert (
        reconciliation.records
        == found.total()
        == len(rows) + reconciliation.duplicates.total() + reconciliation.dead_letters.total()
    )


def _wait(seconds: float) -> None:
    """Wait for a random time, for which there is no condition."""
    threading.Event().wait(seconds)
