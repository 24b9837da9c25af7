"""Sends notifications of object changes to Kafka, in the format of MinIO.

Source: Amazon S3 user guide, "Event message structure"; MinIO puts `EventName` and `Key` around it.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote_plus

from confluent_kafka import KafkaException, Producer

from gamelake.model.errors import KafkaUnavailableError
from gamelake.streaming.files.arrivals.any_names import ListedObject

_FLUSH_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectChange:
    """A change of an object.

    Attributes:
        bucket: the name of the bucket.
        key: of the object.
        etag: of the new content; "" if unknown.
        size: of the new content in bytes.
        moment: the time of the change, with a time zone.
        event: the type of the change, as S3 names it.
    """

    bucket: str
    key: str
    etag: str = ""
    size: int = 0
    moment: datetime
    event: str = "s3:ObjectCreated:Put"


def change_of(listed: ListedObject) -> ObjectChange:
    """Convert an object in a listing to the change that created it."""
    name, moment = listed.name, datetime.fromtimestamp(listed.moment_microseconds / 1_000_000, UTC)
    return ObjectChange(bucket=name.bucket, key=name.key, etag=name.etag, size=listed.size, moment=moment)


def key_of(change: ObjectChange) -> bytes:
    """Return the Kafka key of a notification; it keeps the changes of one object in order."""
    return f"{change.bucket}/{change.key}".encode()


def value_of(change: ObjectChange) -> bytes:
    """Return the Kafka value of a notification (JSON)."""
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
    notification = {"EventName": change.event, "Key": f"{change.bucket}/{change.key}", "Records": [record]}
    return json.dumps(notification).encode()


def publish(producer: Producer, topic: str, changes: Iterable[ObjectChange]) -> int:
    """Send notifications and wait until Kafka has acknowledged all of them.

    Returns:
        The number of notifications.

    Raises:
        KafkaUnavailableError: Kafka did not acknowledge a notification.
    """
    failed: list[str] = []
    sent = 0
    for change in changes:
        _produce(producer, topic, change, failed)
        sent += 1
    if producer.flush(_FLUSH_SECONDS) or failed:
        raise KafkaUnavailableError(
            f"Kafka did not acknowledge notifications of files: {failed[0] if failed else 'timeout'}"
        )
    return sent


def _produce(producer: Producer, topic: str, change: ObjectChange, failed: list[str]) -> None:
    def delivered(error: object, _: object) -> None:
        if error is not None:
            failed.append(str(error))

    while True:
        try:
            producer.produce(topic, value_of(change), key_of(change), on_delivery=delivered)
        except BufferError:
            producer.poll(1)
        except KafkaException as error:
            raise KafkaUnavailableError(f"Kafka rejected a notification: {error}") from error
        else:
            return
