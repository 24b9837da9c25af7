"""Several processes of the gateway are one service: they share the work, and their metrics are summed."""

import re
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded.gateway import Gateway, Reply, body_of, events
from tests.embedded.topic_records import ids_in
from tests.process_table import descendants_of
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.kafka import create_topic, delete_topic

PROCESSES, BODIES, EVENTS = 2, 40, 25


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> Iterator[str]:
    """The topic that the service writes to."""
    name = f"gateway-{uuid.uuid4().hex}"
    create_topic(kafka.bootstrap_servers, name, 3)
    yield name
    delete_topic(kafka.bootstrap_servers, name)


def accepted(gateway: Gateway) -> int:
    found = re.search(
        rb'gamelake_ingest_events_accepted_total\{game="archery_duel"\} ([\d.]+)', gateway.get("/metrics").body
    )
    return int(float(found[1])) if found else 0


def test_events_accepted_by_several_processes_are_in_kafka_and_in_one_metric(
    tmp_path: Path, kafka: EmbeddedKafka, registry: EmbeddedRegistry, topic: str
) -> None:
    gateway = Gateway.open(
        tmp_path / "gateway",
        bootstrap_servers=kafka.bootstrap_servers,
        registry_url=registry.url,
        topic=topic,
        INGEST_PROCESSES=str(PROCESSES),
    )
    try:
        sent = [events(EVENTS) for _ in range(BODIES)]
        replies: list[Reply] = []
        threads = [
            threading.Thread(target=lambda some=some: replies.append(gateway.send(body_of(some)))) for some in sent
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(descendants_of(gateway.process.pid)) >= PROCESSES
        assert sum(reply.result.accepted for reply in replies) == BODIES * EVENTS
        assert {accepted(gateway) for _ in range(10)} == {BODIES * EVENTS}
        found = ids_in(kafka, topic)
        assert [found[str(each["event_id"])] for some in sent for each in some] == [1] * BODIES * EVENTS
    finally:
        gateway.process.stop()
