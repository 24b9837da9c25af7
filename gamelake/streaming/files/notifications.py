"""Parses notifications of object stores, as they come through Kafka.

Sources: Amazon S3 user guide, "Event message structure" (MinIO sends the same, with `EventName` and `Key` around it);
Amazon EventBridge, "Amazon S3 events"; Amazon SNS, "Raw message delivery": a notification through SNS or SQS may be a
text inside their message.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import unquote_plus

import msgspec

_ENVELOPES = ("Message", "Body", "body")
_DEEPEST = 4
_REMOVED = ("ObjectRemoved:", "LifecycleExpiration:")
_CREATED = "ObjectCreated:"


class ObjectEventType(StrEnum):
    """What happened to an object."""

    CREATED = "created"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectName:
    """One content of one object; later content under the same key has another name.

    Attributes:
        version: empty if the bucket has no versions.
        etag: without quotes; empty if the store gave none.
    """

    bucket: str
    key: str
    version: str
    etag: str

    @property
    def text(self) -> str:
        """The name as one text, for its identity."""
        return "\n".join((self.bucket, self.key, self.version or self.etag))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEvent:
    """What happened to one object, by a notification; `size` in bytes, 0 if unknown."""

    name: ObjectName
    event_type: ObjectEventType
    size: int
    moment: datetime | None


class NotificationError(Exception):
    """A value that is no valid notification."""


def object_events(value: bytes | None) -> list[ObjectEvent]:
    """The object events of a notification; none for other events, such as the test events of AWS.

    Raises:
        NotificationError: the value is no valid notification.
    """
    try:
        return list(_notices(msgspec.json.decode(value or b"")))
    except msgspec.DecodeError as error:
        raise NotificationError(f"the notification is no JSON: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise NotificationError(f"the notification has no object name: {error!r}") from None


def _notices(said: Any) -> Iterator[ObjectEvent]:  # noqa: ANN401 # any JSON value
    said = _opened(said)
    if said.get("Event") == "s3:TestEvent":
        return
    if "detail" in said:
        yield _from_event_bridge(said)
        return
    for record in said["Records"]:
        event_type = _event_type(record["eventName"])
        if event_type is not None:
            yield _from_record(record, event_type)


def _opened(said: Any) -> Any:  # noqa: ANN401 # any JSON value
    """The notification inside messages of SNS or SQS, which may be nested."""
    for _ in range(_DEEPEST):
        inner = next((said[name] for name in _ENVELOPES if isinstance(said.get(name), str)), None)
        if inner is None:
            return said
        said = msgspec.json.decode(inner.encode())
    return said


def _event_type(event: str) -> ObjectEventType | None:
    """The type by an event's name, with or without the prefix `s3:`; None for other events."""
    name = event.removeprefix("s3:")
    if name.startswith(_CREATED):
        return ObjectEventType.CREATED
    return ObjectEventType.REMOVED if name.startswith(_REMOVED) else None


def _from_record(record: dict[str, Any], event_type: ObjectEventType) -> ObjectEvent:
    found = record["s3"]["object"]
    name = ObjectName(
        bucket=str(record["s3"]["bucket"]["name"]),
        # Only in these messages keys are encoded as in HTML forms.
        key=unquote_plus(found["key"]),
        version=_version(found.get("versionId")),
        etag=str(found.get("eTag") or "").strip('"'),
    )
    return ObjectEvent(
        name=name, event_type=event_type, size=int(found.get("size") or 0), moment=_moment(record.get("eventTime"))
    )


def _from_event_bridge(said: dict[str, Any]) -> ObjectEvent:
    found = said["detail"]["object"]
    name = ObjectName(
        bucket=str(said["detail"]["bucket"]["name"]),
        key=str(found["key"]),
        version=_version(found.get("version-id")),
        etag=str(found.get("etag") or "").strip('"'),
    )
    event_type = ObjectEventType.CREATED if said["detail-type"] == "Object Created" else ObjectEventType.REMOVED
    return ObjectEvent(
        name=name, event_type=event_type, size=int(found.get("size") or 0), moment=_moment(said.get("time"))
    )


def _version(given: object) -> str:
    # MinIO sends "null" for a bucket whose versioning is suspended.
    return "" if given in (None, "null") else str(given)


def _moment(text: object) -> datetime | None:
    return None if not isinstance(text, str) else datetime.fromisoformat(text)
