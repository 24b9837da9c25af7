"""Parses notifications of object stores, as they arrive through Kafka.

Sources: Amazon S3 user guide, "Event message structure" (MinIO sends the same, with `EventName` and `Key` around it);
Amazon EventBridge, "Amazon S3 events"; Amazon SNS, "Raw message delivery": a notification through SNS or SQS may be a
string inside their message.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import unquote_plus

import msgspec

_ENVELOPES = ("Message", "Body", "body")
_DEEPEST = 4
# The longest key of S3 in bytes; a bucket's name, a version and an ETag are shorter.
_LONGEST_NAME = 1024
_LARGEST_SIZE = 2**63 - 1
_REMOVED = ("ObjectRemoved:", "LifecycleExpiration:")
_CREATED = "ObjectCreated:"


class ObjectEventType(StrEnum):
    """The type of a change of an object."""

    CREATED = "created"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectName:
    """The name of one content of one object; later content under the same key has another name.

    Attributes:
        bucket: the name of the bucket.
        key: of the object.
        version: "" if the bucket has no versions.
        etag: without quotes; "" if the notification has none.
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
    """A change of one object, from a notification.

    Attributes:
        name: of the object's content.
        event_type: of the change.
        size: in bytes; 0 if unknown.
    """

    name: ObjectName
    event_type: ObjectEventType
    size: int


class NotificationError(Exception):
    """A notification, or one of its entries, is invalid; the text quotes no value of it."""


def object_events(value: bytes | None) -> list[ObjectEvent | NotificationError]:
    """Parse the object events of a notification, in order; other events, such as test events of AWS, are left out.

    An entry that names no object becomes an error in the list, without an effect on other entries.

    Raises:
        NotificationError: the value is not a notification.
    """
    try:
        entries = _entries(value)
    except Exception as error:
        # Any other error of a parser is the fault of the value.
        raise _as_notification_error(error) from None
    events = (_event_or_error(entry) for entry in entries)
    return [event for event in events if event is not None]


def _entries(value: bytes | None) -> list[Any]:
    notification = _without_envelopes(msgspec.json.decode(value or b""))
    if notification.get("Event") == "s3:TestEvent":
        return []
    entries = [notification] if "detail" in notification else notification["Records"]
    if not isinstance(entries, list):
        raise NotificationError("the notification has no list 'Records'")
    return entries


def _without_envelopes(message: Any) -> dict[str, Any]:  # noqa: ANN401 # any JSON value
    """Return the notification inside messages of SNS or SQS, which may be nested."""
    for _ in range(_DEEPEST):
        inner = next((message[name] for name in _ENVELOPES if isinstance(message.get(name), str)), None)
        if inner is None:
            break
        message = msgspec.json.decode(inner.encode())
    if not isinstance(message, dict):
        raise NotificationError("the notification is not an object")
    return message


def _event_or_error(entry: Any) -> ObjectEvent | NotificationError | None:  # noqa: ANN401 # any JSON value
    try:
        return _from_event_bridge(entry) if "detail" in entry else _from_record(entry)
    except Exception as error:
        return _as_notification_error(error)


def _as_notification_error(error: Exception) -> NotificationError:
    """Convert an error to one whose text may be in a dead letter; texts of other errors may quote a value."""
    if isinstance(error, NotificationError):
        return error
    if isinstance(error, KeyError):
        return NotificationError(f"the notification has no {error}")
    if isinstance(error, msgspec.DecodeError | UnicodeError):
        return NotificationError("the notification is not JSON")
    return NotificationError(f"the notification can't be read ({type(error).__name__})")


def _from_record(record: dict[str, Any]) -> ObjectEvent | None:
    event_type = _event_type(record["eventName"])
    if event_type is None:
        return None
    found = record["s3"]["object"]
    # Only these messages encode keys as in HTML forms.
    name = _name(record["s3"]["bucket"]["name"], unquote_plus(found["key"]), found.get("versionId"), found.get("eTag"))
    return ObjectEvent(name=name, event_type=event_type, size=_size(found.get("size")))


def _event_type(event: str) -> ObjectEventType | None:
    """Return the type for an event's name, with or without the prefix `s3:`; None for other events."""
    name = event.removeprefix("s3:")
    if name.startswith(_CREATED):
        return ObjectEventType.CREATED
    return ObjectEventType.REMOVED if name.startswith(_REMOVED) else None


def _from_event_bridge(event: dict[str, Any]) -> ObjectEvent:
    found = event["detail"]["object"]
    name = _name(event["detail"]["bucket"]["name"], found["key"], found.get("version-id"), found.get("etag"))
    is_created = event["detail-type"] == "Object Created"
    event_type = ObjectEventType.CREATED if is_created else ObjectEventType.REMOVED
    return ObjectEvent(name=name, event_type=event_type, size=_size(found.get("size")))


def _name(bucket: object, key: object, version: object, etag: object) -> ObjectName:
    # MinIO sends "null" for a bucket whose versioning is suspended.
    parts = (bucket, key, "" if version in (None, "null") else version, "" if etag is None else etag)
    if not all(isinstance(part, str | int) and len(str(part).encode()) <= _LONGEST_NAME for part in parts):
        raise NotificationError(f"a name in the notification is not a text of at most {_LONGEST_NAME} bytes")
    names = [str(part) for part in parts]
    if not names[0] or not names[1]:
        raise NotificationError("the notification names no object")
    return ObjectName(bucket=names[0], key=names[1], version=names[2], etag=names[3].strip('"'))


def can_be_notified(key: str) -> bool:
    """Return True if a notification can have this key: it is text, and no longer than the longest key of S3."""
    try:
        return len(key.encode()) <= _LONGEST_NAME
    except UnicodeEncodeError:  # the name of a file on a disk may be any bytes
        return False


def _size(given: Any) -> int:  # noqa: ANN401 # any JSON value
    size = int(given or 0)
    if not 0 <= size <= _LARGEST_SIZE:
        raise NotificationError("the notification has an impossible size")
    return size
