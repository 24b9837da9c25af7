"""Embedded Kafka and registry: what they keep when they are killed, and what they leave behind."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from tests.support.eventually import eventually
from tests.support.process_table import descendants_of, still_running
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.kafka import create_topic, delete_topic
from tools.embedded.process import ServiceEndedError, ServiceError

A_SCHEMA = Schema('syntax = "proto3"; package game; message Started { string player = 1; }', "PROTOBUF")
ANOTHER_SCHEMA = Schema('syntax = "proto3"; package game; message Ended { string player = 1; }', "PROTOBUF")


def send(kafka: EmbeddedKafka, topic: str, values: list[bytes]) -> None:
    """Return when Kafka has acknowledged every value."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "all"})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def all_values(kafka: EmbeddedKafka, topic: str) -> list[bytes | None]:
    """Every value of a topic of one partition, oldest first."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "reader", "enable.auto.commit": False}
    )
    partition = TopicPartition(topic, 0, 0)
    _, end = consumer.get_watermark_offsets(partition, timeout=30)
    consumer.assign([partition])
    records = consumer.consume(end, timeout=30)
    consumer.close()
    return [record.value() for record in records]


def id_of(schema: Schema, subject: str, registry: EmbeddedRegistry) -> int:
    """Register a schema as a producer does, with Confluent's client, or find it registered."""
    with SchemaRegistryClient({"url": registry.url}) as client:
        schema_id: int = client.register_schema(subject, schema)
    return schema_id


def test_kafka_killed_with_sigkill_comes_back_at_its_address_with_its_records(tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path) as kafka:
        create_topic(kafka.bootstrap_servers, "events", 1)
        send(kafka, "events", [b"first", b"second"])
        address = kafka.bootstrap_servers

        os.kill(kafka.process.pid, signal.SIGKILL)
        eventually(lambda: not kafka.process.is_running())
        kafka.start()

        assert kafka.bootstrap_servers == address
        send(kafka, "events", [b"third"])
        assert all_values(kafka, "events") == [b"first", b"second", b"third"]


@pytest.mark.slow
def test_kafka_of_a_later_run_has_the_records_of_the_earlier_one(tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path) as earlier:
        create_topic(earlier.bootstrap_servers, "events", 1)
        send(earlier, "events", [b"kept"])

    with EmbeddedKafka(tmp_path) as later:
        assert all_values(later, "events") == [b"kept"]


@pytest.mark.slow
def test_a_schema_has_the_same_id_after_the_registry_was_killed(tmp_path: Path) -> None:
    with EmbeddedRegistry(tmp_path) as registry:
        before = id_of(A_SCHEMA, "started", registry)

        registry.kill()
        registry.start()

        assert id_of(ANOTHER_SCHEMA, "ended", registry) != before
        assert id_of(A_SCHEMA, "started", registry) == before


@pytest.mark.slow
def test_a_schema_has_the_same_id_in_a_later_run(tmp_path: Path) -> None:
    with EmbeddedRegistry(tmp_path) as earlier:
        before = id_of(A_SCHEMA, "started", earlier)

    with EmbeddedRegistry(tmp_path) as later:
        assert id_of(A_SCHEMA, "started", later) == before


@pytest.mark.parametrize(
    ("number", "options", "more"),
    [
        (signal.SIGKILL, (), set()),
        pytest.param(
            signal.SIGTERM, ("--gateway", "game-events"), {"gateway_url", "keys_file"}, marks=pytest.mark.slow
        ),
        pytest.param(signal.SIGINT, (), set(), marks=pytest.mark.slow),
    ],
)
def test_nothing_is_left_running_when_the_parent_is_ended(
    tmp_path: Path, number: signal.Signals, options: tuple[str, ...], more: set[str]
) -> None:
    command = (sys.executable, "-m", "tools.embedded", "--directory", str(tmp_path), *options)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        addresses = json.loads(parent.stdout.readline())
        children = descendants_of(parent.pid)

        parent.send_signal(number)

    assert set(addresses) == {"bootstrap_servers", "registry_url"} | more
    # Two services, each on its tether; the gateway has a second process.
    assert len(children) == (7 if more else 4)
    eventually(lambda: not still_running(children))


@pytest.mark.slow
def test_a_service_that_cannot_start_names_its_exit_code_and_the_end_of_its_log(tmp_path: Path) -> None:
    kafka = EmbeddedKafka(tmp_path)
    host, port = kafka.bootstrap_servers.split(":")

    with socket.socket() as squatter:
        squatter.bind((host, int(port)))
        with pytest.raises(ServiceEndedError) as raised:
            kafka.start()

    assert "Kafka ended with exit code 1" in str(raised.value)
    assert str(tmp_path / "kafka.log") in str(raised.value)
    assert "Address already in use" in str(raised.value)


def test_a_topic_made_twice_is_there_once(kafka: EmbeddedKafka, topic: Callable[[int], str]) -> None:
    name = topic(3)

    create_topic(kafka.bootstrap_servers, name, 3)

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    assert len(admin.list_topics(name, timeout=30).topics[name].partitions) == 3


def test_a_topic_with_another_number_of_partitions_is_refused(
    kafka: EmbeddedKafka, topic: Callable[[int], str]
) -> None:
    name = topic(3)

    with pytest.raises(ServiceError, match="has 3 partitions, not 4"):
        create_topic(kafka.bootstrap_servers, name, 4)


def test_a_deleted_topic_comes_back_empty(kafka: EmbeddedKafka, topic: Callable[[int], str]) -> None:
    name = topic(1)
    send(kafka, name, [b"gone"])

    delete_topic(kafka.bootstrap_servers, name)
    delete_topic(kafka.bootstrap_servers, name)
    create_topic(kafka.bootstrap_servers, name, 1)

    assert all_values(kafka, name) == []


def test_one_schema_has_one_id_under_every_subject(registry: EmbeddedRegistry) -> None:
    assert id_of(A_SCHEMA, "one-value", registry) == id_of(A_SCHEMA, "two-value", registry)
