"""Reads the current records of a topic and their events."""

from collections import Counter
from functools import cache
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.schemas.event_schemas import load_schemas
from gamelake.schemas.framing import HEADER_BYTES
from tools.embedded import EmbeddedKafka

_CONTRACTS = Path(__file__).parents[2] / "contracts"
_VERSION = 4
# A record's key.
_PSEUDONYM_CHARACTERS = 32
_SECONDS = 30


def records_in(kafka: EmbeddedKafka, topic: str) -> list[bytes]:
    """Keys and values of all records of a topic."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "test"})
    partitions = consumer.list_topics(topic, timeout=_SECONDS).topics[topic].partitions
    ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=_SECONDS)[1] for p in partitions}
    consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
    found: list[bytes] = []
    while len(found) < sum(ends.values()):
        messages = consumer.consume(10_000, timeout=1)
        assert not any(message.error() for message in messages)
        found += [(message.key() or b"") + (message.value() or b"") for message in messages]
    consumer.close()
    return found


def ids_in(kafka: EmbeddedKafka, topic: str) -> Counter[str]:
    """The number of records of each event in a topic."""
    event = _event_class()
    values = (record[_PSEUDONYM_CHARACTERS + HEADER_BYTES :] for record in records_in(kafka, topic))
    return Counter(event.FromString(value).event_id for value in values)  # type: ignore[attr-defined]


@cache
def _event_class() -> type[Message]:
    return GetMessageClass(load_schemas(_CONTRACTS, _VERSION)[-1].message)
