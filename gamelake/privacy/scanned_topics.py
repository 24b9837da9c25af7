"""Scans Kafka's records as a consumer sees them; on the broker's disk they may be compressed."""

from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from gamelake.kafka import KafkaAccess
from gamelake.privacy.scan import Scanner

_SECONDS = 30
_RECORDS = 10_000
_SILENT_POLLS = 30


def scan_topics(scanner: Scanner, kafka: KafkaAccess, topics: Sequence[str]) -> None:
    """Scan all records that these topics have now; without names, all readable topics."""
    consumer = Consumer(
        {**kafka.for_clients(), "group.id": "prove-erasure", "enable.auto.commit": False, "enable.partition.eof": True}
    )
    try:
        for topic in topics or sorted(consumer.list_topics(timeout=_SECONDS).topics):
            try:
                _scan_topic(scanner, consumer, topic)
            except KafkaException as error:
                scanner.scan.unscanned.append(f"topic {topic}: {error.args[0].str()}")
    except KafkaException as error:
        scanner.scan.unscanned.append(f"Kafka: {error.args[0].str()}")
    finally:
        consumer.close()


def _scan_topic(scanner: Scanner, consumer: Consumer, topic: str) -> None:
    found = consumer.list_topics(topic, timeout=_SECONDS).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    for partition in found.partitions:
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_SECONDS)
        if first < end:
            consumer.assign([TopicPartition(topic, partition, first)])
            _scan_partition(scanner, consumer, TopicPartition(topic, partition, end))
            consumer.unassign()


def _scan_partition(scanner: Scanner, consumer: Consumer, end: TopicPartition) -> None:
    silent, reached = 0, False
    while not reached:
        messages = consumer.consume(_RECORDS, timeout=1)
        silent = 0 if messages else silent + 1
        if silent > _SILENT_POLLS:
            scanner.scan.unscanned.append(f"topic {end.topic}[{end.partition}]: its end was not reached")
            return
        # The end-of-partition event counts too: the last offsets may be transaction markers, which consumers never get.
        reached = any(_is_end(message) or (message.offset() or 0) >= end.offset - 1 for message in messages)
        _scan_messages(scanner, [message for message in messages if message.error() is None])


def _is_end(message: Message) -> bool:
    """Return True if this is the end of its partition.

    Raises:
        KafkaException: it is an error that keeps records from being read.
    """
    error = message.error()
    # The client looks for the coordinator of its group, though partitions that are assigned need neither.
    if error is None or error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return False
    if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 # the client's public name
        raise KafkaException(error)
    return True


def _scan_messages(scanner: Scanner, messages: Sequence[Message]) -> None:
    """Scan all records at once; only if there is a hit, each on its own."""
    records = [_bytes(message) for message in messages]
    scanner.scan.records += len(records)
    if not scanner.hits(b"\0\0".join(records)):
        return
    for message, record in zip(messages, records, strict=True):
        hits = scanner.hits(record)
        if hits:
            scanner.note(hits, f"topic {message.topic()}[{message.partition()}] at {message.offset()}")


def _bytes(message: Message) -> bytes:
    parts: list[str | bytes | None] = [message.key(), message.value()]
    headers = message.headers() or []
    for name, value in headers.items() if isinstance(headers, dict) else headers:
        parts += [name, value]
    return b"\0".join(_as_bytes(part) for part in parts)


def _as_bytes(part: str | bytes | None) -> bytes:
    return part.encode() if isinstance(part, str) else part or b""
