"""A notification as MinIO sends it to Kafka.

Source: Amazon S3 user guide, "Event message structure"; MinIO puts `EventName` and `Key` around it.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote_plus

from confluent_kafka import KafkaException, Producer

from gamelake.model.errors import KafkaUnavailableError

_FLUSH_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectChange:
    """Something that happened to an object; `size` in bytes, `moment` with its time zone."""

    bucket: str
    key: str
    etag: str = ""
    size: int = 0
    moment: datetime
    event: str = "s3:ObjectCreated:Put"


def key_of(change: ObjectChange) -> bytes:
    """The key of the notification: what happens to one object stays in order."""
    return f"{change.bucket}/{change.key}".encode()


def value_of(change: ObjectChange) -> bytes:
    """The notification."""
    moment = change.moment.astimezone(UTC)
    described = {"key": quote_plus(change.key), "size": change.size, "eTag": change.etag}
    record = {
        "eventVersion": "2.0",
        "eventSource": "gamelake:folder",
        "eventTime": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z",
        "eventName": change.event,
        "s3": {
            "bucket": {"name": change.bucket},
            "object": described | {"sequencer": f"{int(moment.timestamp() * 1_000_000_000):016X}"},
        },
    }
    said = {"EventName": change.event, "Key": f"{change.bucket}/{change.key}", "Records": [record]}
    return json.dumps(said).encode()


def publish(producer: Producer, topic: str, changes: Iterable[ObjectChange]) -> int:
    """Have Kafka take notifications, and return how many they were when it has them.

    Raises:
        KafkaUnavailableError: it does not take them.
    """
    refused: list[str] = []
    told = 0
    for change in changes:
        _produce(producer, topic, change, refused)
        told += 1
    if producer.flush(_FLUSH_SECONDS) or refused:
        raise KafkaUnavailableError(
            f"Kafka did not take what was told of files: {refused[0] if refused else 'silence'}"
        )
    return told


def _produce(producer: Producer, topic: str, change: ObjectChange, refused: list[str]) -> None:
    def answered(error: object, _: object) -> None:
        if error is not None:
            refused.append(str(error))

    while True:
        try:
            producer.produce(topic, value_of(change), key_of(change), on_delivery=answered)
        except BufferError:
            producer.poll(1)
        except KafkaException as error:
            raise KafkaUnavailableError(f"Kafka takes nothing: {error}") from error
        else:
            return
