"""Notifications of each object store are parsed."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.streaming.files.arrivals.changes import ObjectChange, value_of
from gamelake.streaming.files.arrivals.notifications import NotificationError, ObjectEvent, ObjectEventType, ObjectName
from gamelake.streaming.files.arrivals.notifications import object_events as object_events_or_errors
from tests.unit.properties import examples

KEY = "2026/11/22/a b+ü%.json"
# As AWS documents it, shortened: what is not read is left out.
RECORD = {
    "eventVersion": "2.1",
    "eventSource": "aws:s3",
    "eventTime": "2026-11-22T10:00:00.123Z",
    "eventName": "ObjectCreated:Put",
    "s3": {
        "bucket": {"name": "landing", "arn": "arn:aws:s3:::landing"},
        "object": {"key": "2026/11/22/a+b%2B%C3%BC%25.json", "size": 1024, "eTag": "d41d8cd9", "versionId": "v7"},
    },
}


def said(**changes: object) -> bytes:
    return json.dumps({"Records": [RECORD | changes]}).encode()


def object_events(value: bytes | None) -> list[ObjectEvent]:
    """The events of a notification without an invalid entry."""
    events = object_events_or_errors(value)
    assert all(isinstance(event, ObjectEvent) for event in events)
    return cast(list[ObjectEvent], events)


def test_a_message_of_s3_names_its_object_with_the_key_as_it_is() -> None:
    [notice] = object_events(said())

    assert notice.name == ObjectName(bucket="landing", key=KEY, version="v7", etag="d41d8cd9")
    assert (notice.event_type, notice.size) == (ObjectEventType.CREATED, 1024)


def test_notifications_inside_messages_of_sns_and_sqs_are_parsed() -> None:
    plain = said().decode()
    by_sns = json.dumps({"Type": "Notification", "Message": plain})
    by_sqs = json.dumps({"MessageId": "1", "Body": by_sns})

    assert object_events(by_sns.encode()) == object_events(by_sqs.encode()) == object_events(said())


def test_an_event_of_event_bridge_names_its_object() -> None:
    event = {
        "detail-type": "Object Created",
        "time": "2026-11-22T10:00:00Z",
        "detail": {"bucket": {"name": "landing"}, "object": {"key": KEY, "size": 5, "etag": "e", "version-id": "v"}},
    }

    [notice] = object_events(json.dumps(event).encode())

    assert notice.name == ObjectName(bucket="landing", key=KEY, version="v", etag="e")


@pytest.mark.parametrize(
    ("event", "event_type"),
    [
        ("s3:ObjectCreated:CompleteMultipartUpload", ObjectEventType.CREATED),
        ("ObjectCreated:Copy", ObjectEventType.CREATED),
        ("s3:ObjectRemoved:DeleteMarkerCreated", ObjectEventType.REMOVED),
        ("LifecycleExpiration:Delete", ObjectEventType.REMOVED),
    ],
)
def test_the_event_type_follows_from_the_event_name(event: str, event_type: ObjectEventType) -> None:
    [notice] = object_events(said(eventName=event))

    assert notice.event_type is event_type


@pytest.mark.parametrize("event", ["s3:ObjectAccessed:Get", "s3:Replication:OperationFailed", "ObjectTagging:Put"])
def test_events_that_create_no_content_have_no_object(event: str) -> None:
    assert object_events(said(eventName=event)) == []


def test_the_test_message_of_aws_has_no_object() -> None:
    assert object_events(b'{"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "landing"}') == []


@pytest.mark.parametrize(
    "value",
    [None, b"", b"no JSON", b"[]", b"7", b"{}", b'{"Records": 3}', b'{"Message": "no JSON"}', b"[" * 100_000, b"\xff"],
)
def test_an_invalid_notification_is_an_error_with_its_reason(value: bytes | None) -> None:
    with pytest.raises(NotificationError, match="the notification"):
        object_events(value)


@examples(200)
@given(st.binary(max_size=60))
def test_any_value_is_a_notification_or_an_error(value: bytes) -> None:
    with suppress(NotificationError):
        assert isinstance(object_events_or_errors(value), list)


_ODD_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["secret", "1e9"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@examples(300)
@given(st.sampled_from(["key", "size", "eTag", "versionId", "bucket", "eventName", "s3", "object"]), _ODD_JSON)
def test_an_odd_entry_harms_no_other_entry_and_its_error_quotes_no_value(place: str, odd: object) -> None:
    entry: dict[str, Any] = json.loads(json.dumps(RECORD))
    parent = {"eventName": entry, "s3": entry, "object": entry["s3"], "bucket": entry["s3"]["bucket"]}
    parent.get(place, entry["s3"]["object"])["name" if place == "bucket" else place] = odd

    events = object_events_or_errors(json.dumps({"Records": [RECORD, entry, RECORD]}).encode())

    assert [events[0]] == [events[-1]] == object_events(said())
    for event in events[1:-1]:
        if isinstance(event, NotificationError):
            assert "secret" not in str(event)
        else:
            assert 0 <= event.size < 2**63
            assert all(0 < len(name.encode()) <= 1024 for name in (event.name.bucket, event.name.key))


@pytest.mark.parametrize("size", [2**63, 10**30, -1, 1e300, "many", [1]])
def test_an_impossible_size_is_an_error(size: object) -> None:
    [error] = object_events_or_errors(said(s3={"bucket": {"name": "b"}, "object": {"key": "k", "size": size}}))

    assert isinstance(error, NotificationError)


@pytest.mark.parametrize("key", ["", "x" * 1025, None, 1.5, {"a": 1}])
def test_an_impossible_key_is_an_error(key: object) -> None:
    [error] = object_events_or_errors(said(s3={"bucket": {"name": "b"}, "object": {"key": key}}))

    assert isinstance(error, NotificationError)


@examples(100)
@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40),
    st.integers(0, 2**40),
)
def test_notifications_of_this_library_are_parsed(key: str, size: int) -> None:
    moment = datetime(2026, 11, 22, 10, tzinfo=UTC)

    [notice] = object_events(value_of(ObjectChange(bucket="landing", key=key, etag="e-1", size=size, moment=moment)))

    assert notice.name == ObjectName(bucket="landing", key=key, version="", etag="e-1")
    assert notice.size == size
