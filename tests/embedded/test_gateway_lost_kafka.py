"""Kafka's disk is lost: its successor gives new producers the ids of old ones, which continue writing."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.embedded.gateway import Gateway, body_of, events
from tests.embedded.topic_records import ids_in
from tests.support.eventually import eventually
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.kafka import create_topic

TOPIC = "events"


@pytest.mark.slow
def test_a_gateway_whose_producer_id_is_in_use_accepts_events_all_the_same(
    tmp_path: Path, registry: EmbeddedRegistry
) -> None:
    accepted: set[str] = set()

    def opened(name: str) -> Gateway:
        gateway = Gateway.open(
            tmp_path / name,
            bootstrap_servers=kafka.bootstrap_servers,
            registry_url=registry.url,
            topic=TOPIC,
            INGEST_KAFKA_SECONDS="3",
        )
        running.callback(gateway.process.stop)
        return gateway

    def accepts_by(gateway: Gateway) -> bool:
        batch = events(20)
        is_accepted = gateway.send(body_of(batch)).status == 200
        if is_accepted:
            accepted.update(str(event["event_id"]) for event in batch)
        return is_accepted

    with EmbeddedKafka(tmp_path / "kafka") as kafka, ExitStack() as running:
        create_topic(kafka.bootstrap_servers, TOPIC, 1)
        first = opened("first")
        assert accepts_by(first)
        kafka.stop()
        shutil.rmtree(tmp_path / "kafka" / "data")
        kafka.start()
        create_topic(kafka.bootstrap_servers, TOPIC, 1)
        accepted.clear()
        eventually(lambda: accepts_by(first), timeout=60)

        second = opened("second")
        eventually(lambda: accepts_by(second), timeout=30)
        assert accepts_by(first)
        assert accepts_by(second)
        found = ids_in(kafka, TOPIC)

    assert b"producer_replaced" in second.log()
    assert accepted <= found.keys()
