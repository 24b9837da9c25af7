"""Several processes of the gateway are one service: they share the work, and their metrics are summed."""

import re
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.embedded.gateway import LIMITED_KEY, Gateway, Reply, body_of, events
from tests.embedded.topic_records import ids_in
from tests.support.eventually import eventually
from tests.support.process_table import descendants_of
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.kafka import create_topic, delete_topic

PROCESSES, BODIES, EVENTS = 2, 40, 25
QUOTA, BATCH, DAY_SECONDS = 400, 100, 86_400


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> Iterator[str]:
    """The topic that the service writes to."""
    name = f"gateway-{uuid.uuid4().hex}"
    create_topic(kafka.bootstrap_servers, name, 3)
    yield name
    delete_topic(kafka.bootstrap_servers, name)


@pytest.fixture
def gateway(tmp_path: Path, kafka: EmbeddedKafka, registry: EmbeddedRegistry, topic: str) -> Iterator[Gateway]:
    """The service in two processes."""
    opened = Gateway.open(
        tmp_path / "gateway",
        bootstrap_servers=kafka.bootstrap_servers,
        registry_url=registry.url,
        topic=topic,
        INGEST_PROCESSES=str(PROCESSES),
    )
    yield opened
    opened.process.stop()


def accepted(gateway: Gateway) -> int:
    found = re.search(rb'gamelake_ingest_events_accepted_total\{game="archery_duel"\} ([\d.]+)', gateway.metrics())
    return int(float(found[1])) if found else 0


def test_events_accepted_by_several_processes_are_in_kafka_and_in_one_metric(
    gateway: Gateway, kafka: EmbeddedKafka, topic: str
) -> None:
    sent = [events(EVENTS) for _ in range(BODIES)]
    replies: list[Reply] = []
    threads = [threading.Thread(target=lambda some=some: replies.append(gateway.send(body_of(some)))) for some in sent]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(descendants_of(gateway.process.pid)) >= PROCESSES
    assert sum(reply.result.accepted for reply in replies) == BODIES * EVENTS
    assert {accepted(gateway) for _ in range(10)} == {BODIES * EVENTS}
    found = ids_in(kafka, topic)
    assert [found[str(each["event_id"])] for some in sent for each in some] == [1] * BODIES * EVENTS


@pytest.mark.slow
def test_a_key_that_has_used_its_quota_is_refused_by_all_processes_until_it_is_raised(gateway: Gateway) -> None:
    set_quota(gateway, QUOTA)
    # Both processes have the quota from their start.
    gateway.process.stop()
    gateway.restart()
    send = partial(gateway.send, gamelake_key=LIMITED_KEY)

    for sent in range(BATCH, QUOTA + 1, BATCH):
        assert send(body_of(events(BATCH))).result.accepted == BATCH
        eventually(partial(has_used, gateway, sent / QUOTA))
    refused = [send(body_of(events(1))) for _ in range(10)]

    assert {reply.status for reply in refused} == {429}
    assert {0 < int(reply.headers["retry-after"]) <= DAY_SECONDS for reply in refused} == {True}
    assert gateway.send(body_of(events(1))).status == 200
    set_quota(gateway, 2 * QUOTA)
    eventually(lambda: send(body_of(events(1))).status == 200)


def set_quota(gateway: Gateway, events_per_day: int) -> None:
    """Give the limited key a quota."""
    file = gateway.service.keys_file
    text = re.sub(r", quota: {[^}]*}", "", file.read_text())
    file.write_text(text.replace("rate: 500}", f"rate: 500, quota: {{events: {events_per_day}}}}}"))


def has_used(gateway: Gateway, share: float) -> bool:
    """Return True if all processes know that the limited key has used this share of its quota."""
    found = re.search(rb"gamelake_ingest_quota_used_ratio{[^}]*} ([\d.]+)", gateway.metrics())
    return found is not None and float(found[1]) == share
