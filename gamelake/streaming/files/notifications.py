"""What an object store says of its objects, as it comes through Kafka.

Sources: Amazon S3 user guide, "Event message structure" (MinIO sends the same, with `EventName` and `Key` around it);
Amazon EventBridge, "Amazon S3 events"; Amazon SNS, "Raw message delivery": what came through SNS or SQS may stand in an
envelope as text.
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
    """What became of an object."""

    CREATED = "created"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectName:
    """One content of one object: what is written under its key later is another one.

    Attributes:
        version: of a bucket that keeps versions, else empty.
        etag: of the content, without quotes; empty where the store gave none.
    """

    bucket: str
    key: str
    version: str
    etag: str

    @property
    def text(self) -> str:
        """The name in one text, by which it is known again."""
        return "\n".join((self.bucket, self.key, self.version or self.etag))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEvent:
    """One object that a notification tells of; `size` in bytes, 0 where it was not said."""

    name: ObjectName
    happening: ObjectEventType
    size: int
    moment: datetime | None


class NotificationError(Exception):
    """A notification that says nothing that can be understood."""


def object_events(value: bytes | None) -> list[ObjectEvent]:
    """The objects that a notification tells of; none if it tells of something else, as the test events of AWS do.

    Raises:
        NotificationError: it is no notification.
    """
    try:
        return list(_notices(msgspec.json.decode(value or b"")))
    except msgspec.DecodeError as error:
        raise NotificationError(f"the notification is no JSON: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise NotificationError(f"the notification lacks what names an object: {error!r}") from None


def _notices(said: Any) -> Iterator[ObjectEvent]:  # noqa: ANN401 # whatever JSON has
    said = _opened(said)
    if said.get("Event") == "s3:TestEvent":
        return
    if "detail" in said:
        yield _from_event_bridge(said)
        return
    for record in said["Records"]:
        happening = _happening(record["eventName"])
        if happening is not None:
            yield _from_record(record, happening)


def _opened(said: Any) -> Any:  # noqa: ANN401 # whatever JSON has
    """What stands in an envelope of SNS or SQS; one may stand in the other."""
    for _ in range(_DEEPEST):
        inner = next((said[name] for name in _ENVELOPES if isinstance(said.get(name), str)), None)
        if inner is None:
            return said
        said = msgspec.json.decode(inner.encode())
    return said


def _happening(event: str) -> ObjectEventType | None:
    """What an event's name says; with or without `s3:` before it."""
    name = event.removeprefix("s3:")
    if name.startswith(_CREATED):
        return ObjectEventType.CREATED
    return ObjectEventType.REMOVED if name.startswith(_REMOVED) else None


def _from_record(record: dict[str, Any], happening: ObjectEventType) -> ObjectEvent:
    found = record["s3"]["object"]
    name = ObjectName(
        bucket=str(record["s3"]["bucket"]["name"]),
        # In these messages, and in no others, keys are written as in a form of a web page.
        key=unquote_plus(found["key"]),
        version=_version(found.get("versionId")),
        etag=str(found.get("eTag") or "").strip('"'),
    )
    return ObjectEvent(
        name=name, happening=happening, size=int(found.get("size") or 0), moment=_moment(record.get("eventTime"))
    )


def _from_event_bridge(said: dict[str, Any]) -> ObjectEvent:
    found = said["detail"]["object"]
    name = ObjectName(
        bucket=str(said["detail"]["bucket"]["name"]),
        key=str(found["key"]),
        version=_version(found.get("version-id")),
        etag=str(found.get("etag") or "").strip('"'),
    )
    happening = ObjectEventType.CREATED if said["detail-type"] == "Object Created" else ObjectEventType.REMOVED
    return ObjectEvent(
        name=name, happening=happening, size=int(found.get("size") or 0), moment=_moment(said.get("time"))
    )


def _version(given: object) -> str:
    # MinIO says "null" of a bucket that keeps no versions any more.
    return "" if given in (None, "null") else str(given)


def _moment(text: object) -> datetime | None:
    return None if not isinstance(text, str) else datetime.fromisoformat(text)
