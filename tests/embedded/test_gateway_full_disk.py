"""Kafka's disk is full: the gateway responds with 503, and recovers once there is space; no file has to be deleted."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.embedded.gateway import Gateway, body_of, events
from tests.embedded.small_disk import NoSmallDiskError, SmallDisk
from tests.embedded.topic_records import ids_in
from tests.support.eventually import eventually
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.kafka import create_topic

TOPIC = "events"
SMALL_MIB, LARGER_MIB = 64, 400
FILLING_EVENTS = 300
# Incompressible, so that the disk fills soon.
FILLING_BYTES = 1500
MIB = 2**20


@pytest.fixture
def disk(tmp_path: Path, missing_service: Callable[[str], NoReturn]) -> Iterator[SmallDisk]:
    """The disk that Kafka writes to."""
    try:
        with SmallDisk.mounted(tmp_path / "disk", SMALL_MIB) as disk:
            yield disk
    except NoSmallDiskError as error:
        missing_service(str(error))


@pytest.mark.slow
def test_a_full_disk_is_503_and_all_accepted_events_are_there_afterwards(
    tmp_path: Path, disk: SmallDisk, registry: EmbeddedRegistry
) -> None:
    accepted: list[str] = []
    statuses: list[int] = []
    with EmbeddedKafka(disk.folder / "kafka", {"log.segment.bytes": 4 * MIB}) as kafka:
        create_topic(kafka.bootstrap_servers, TOPIC, 3)
        gateway = Gateway.open(
            tmp_path / "gateway",
            bootstrap_servers=kafka.bootstrap_servers,
            registry_url=registry.url,
            topic=TOPIC,
            INGEST_KAFKA_SECONDS="3",
        )

        def fill() -> bool:
            batch = [event | {"session_id": secrets.token_hex(FILLING_BYTES)} for event in events(FILLING_EVENTS)]
            statuses.append(gateway.send(body_of(batch)).status)
            if statuses[-1] == 200:
                accepted.extend(str(event["event_id"]) for event in batch)
            return statuses[-1] == 503

        eventually(fill, timeout=120)
        assert disk.free_bytes < 4 * MIB
        # A broker that can't write to its disk ends by itself; its data stays.
        eventually(lambda: not kafka.process.is_running(), timeout=60)
        disk.grow(LARGER_MIB)
        kafka.start()
        eventually(lambda: gateway.send(body_of(events(1))).status == 200, timeout=60)
        found = ids_in(kafka, TOPIC)
        gateway.process.stop()

    assert set(statuses) == {200, 503}
    assert len(accepted) > FILLING_EVENTS
    assert set(accepted) <= found.keys()
