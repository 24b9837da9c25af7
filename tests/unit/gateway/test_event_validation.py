"""Which events of a body are valid, and with which reason the others are rejected."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.schemas.framing import frame_header
from services.gateway.errors import BodyTooLargeError, Reason, UnreadableBodyError, UnsupportedMediaTypeError
from services.gateway.events.preparation import RecordEncoder
from services.gateway.events.validation import JSON, PROTOBUF, ValidatedEvents
from services.sdk.batches import delimited
from tests.unit.gateway.events import MAX_EVENTS, SCHEMA_ID, an_event, batch_of, body_of, schema, submitted, validator


def validate(body: bytes, content_type: str = JSON) -> ValidatedEvents:
    return validator().validate(batch_of(body, content_type))


def only_rejection(body: bytes, content_type: str = JSON) -> tuple[Reason, str]:
    validated = validate(body, content_type)
    assert validated.events == []
    (rejection,) = validated.rejections
    return rejection.reason, rejection.field


def a_message(**fields: object) -> Message:
    message = GetMessageClass(submitted())(
        event_id=str(uuid.uuid4()), event_name="purchase", gamer_id="player-2", **fields
    )
    message.event_time.FromDatetime(datetime.now(UTC))  # type: ignore[attr-defined]
    return message


def test_an_event_becomes_a_message_of_the_contract_with_its_arrival_time() -> None:
    sent = an_event(event_params={"platform": "ios", "level": 3, "amount": 1.5}, attributes={"a": "b"})

    (event,) = validate(body_of(sent)).events

    assert event.event_id == sent["event_id"]  # type: ignore[attr-defined]
    assert event.event_params.level == 3  # type: ignore[attr-defined]
    assert event.attributes["a"] == "b"  # type: ignore[attr-defined]
    assert abs(event.ingest_time.ToDatetime(UTC) - datetime.now(UTC)) < timedelta(minutes=1)  # type: ignore[attr-defined]


def test_a_times_offset_and_microseconds_are_kept() -> None:
    moment = datetime.now(UTC).replace(microsecond=123_456)
    sent = an_event(event_time=moment.astimezone().isoformat(), event_params={"client_event_time": moment.isoformat()})

    (event,) = validate(body_of(sent)).events

    assert event.event_time.ToDatetime(UTC) == moment  # type: ignore[attr-defined]
    assert event.event_params.client_event_time.ToDatetime(UTC) == moment  # type: ignore[attr-defined]


def test_a_record_has_the_header_of_the_lakes_schema_and_the_player_as_key() -> None:
    events = validate(body_of(an_event(), an_event(gamer_id="player-9"))).events

    records = RecordEncoder(SCHEMA_ID).encode(events)

    assert [record["key"] for record in records] == ["player-1", "player-9"]
    header = frame_header(SCHEMA_ID)
    assert all(record["value"].startswith(header) for record in records)
    kept = GetMessageClass(schema().message).FromString(records[1]["value"][len(header) :])
    assert kept.gamer_id == "player-9"  # type: ignore[attr-defined]


def test_an_event_without_a_game_gets_the_keys_game() -> None:
    (event,) = validate(body_of(an_event())).events

    assert event.game_name == "Archery Duel"  # type: ignore[attr-defined]


def test_an_invalid_event_is_rejected_by_index_and_the_others_are_accepted() -> None:
    validated = validate(body_of(an_event(), "no object", an_event(), {"event_id": "x"}))

    assert len(validated.events) == 2
    assert [(each.index, each.reason) for each in validated.rejections] == [
        (1, Reason.MALFORMED),
        (3, Reason.NO_EVENT_ID),
    ]


@pytest.mark.parametrize(
    ("fields", "reason", "field"),
    [
        ({"event_id": ""}, Reason.NO_EVENT_ID, "event_id"),
        ({"event_id": "not-a-uuid"}, Reason.NO_EVENT_ID, "event_id"),
        ({"event_name": ""}, Reason.NO_EVENT_NAME, "event_name"),
        ({"gamer_id": None}, Reason.NO_GAMER_ID, "gamer_id"),
        ({"event_time": None}, Reason.NO_EVENT_TIME, "event_time"),
        ({"event_time": "1999-01-01T00:00:00Z"}, Reason.IMPLAUSIBLE_EVENT_TIME, "event_time"),
        ({"event_time": "yesterday"}, Reason.WRONG_TYPE, "event_time"),
        ({"event_time": "2026-01-01T00:00:00"}, Reason.WRONG_TYPE, "event_time"),
        ({"event_time": 5}, Reason.WRONG_TYPE, "event_time"),
        ({"game_name": "Bingo Harbor"}, Reason.OTHER_GAME, "game_name"),
        ({"session_id": 5}, Reason.WRONG_TYPE, "session_id"),
        ({"event_params": {"level": "high"}}, Reason.WRONG_TYPE, "event_params.level"),
        ({"event_params": {"level": 2**40}}, Reason.WRONG_TYPE, "event_params.level"),
        ({"event_params": {"e_mail": "x@example.org"}}, Reason.UNKNOWN_FIELD, "event_params"),
        ({"event_params": []}, Reason.WRONG_TYPE, "event_params"),
        # What a message class would take for something else.
        ({"event_params": {"amount": True}}, Reason.WRONG_TYPE, "event_params.amount"),
        ({"error": {"fatal": 1}}, Reason.WRONG_TYPE, "error.fatal"),
        ({"experiment_ids": "new_shop"}, Reason.WRONG_TYPE, "experiment_ids"),
        ({"experiment_ids": {"new_shop": "a"}}, Reason.WRONG_TYPE, "experiment_ids"),
        ({"experiment_ids": [True]}, Reason.WRONG_TYPE, "experiment_ids"),
        ({"attributes": [["a", "b"]]}, Reason.WRONG_TYPE, "attributes"),
        ({"attributes": []}, Reason.WRONG_TYPE, "attributes"),
        ({"attributes": ""}, Reason.WRONG_TYPE, "attributes"),
        ({"event_params": {"amount": 1e13}}, Reason.IMPLAUSIBLE_AMOUNT, "event_params.amount"),
        ({"event_params": {"amount": -1e13}}, Reason.IMPLAUSIBLE_AMOUNT, "event_params.amount"),
        ({"event_params": {"amount": 1e308}}, Reason.IMPLAUSIBLE_AMOUNT, "event_params.amount"),
        ({"connection_type": "CARRIER_PIGEON"}, Reason.WRONG_TYPE, "connection_type"),
        ({"player_password": "secret"}, Reason.UNKNOWN_FIELD, ""),
    ],
)
def test_a_rejection_names_the_field_by_its_path_in_the_contract(
    fields: dict[str, object], reason: Reason, field: str
) -> None:
    assert only_rejection(body_of(an_event(**fields))) == (reason, field)


def test_an_event_may_have_its_games_name() -> None:
    assert len(validate(body_of(an_event(game_name="Archery Duel"))).events) == 1


def test_protobuf_events_are_length_delimited() -> None:
    events = [a_message(), a_message(session_id="x" * 200)]

    validated = validate(b"".join(delimited(event.SerializeToString()) for event in events), PROTOBUF).events

    assert validated != events
    assert [event.event_id for event in validated] == [event.event_id for event in events]  # type: ignore[attr-defined]


def test_an_unreadable_message_does_not_affect_the_others() -> None:
    validated = validate(delimited(b"\xff\xff\xff") + delimited(a_message().SerializeToString()), PROTOBUF)

    assert len(validated.events) == 1
    assert [(each.index, each.reason) for each in validated.rejections] == [(0, Reason.MALFORMED)]


def test_an_event_with_an_unknown_field_is_rejected() -> None:
    unknown = a_message().SerializeToString() + b"\xfa\x7d\x03abc"

    assert only_rejection(delimited(unknown), PROTOBUF) == (Reason.UNKNOWN_FIELD, "")


@pytest.mark.parametrize("body", [b"\x80", b"\x85\x00abc", b"\xff\xff\xff\xff\x01"])
def test_a_truncated_sequence_of_messages_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableBodyError):
        validate(body, PROTOBUF)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"events": 3}', b'{"events": [], "more": 1}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_body_without_a_list_of_events_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableBodyError):
        validate(body)


@pytest.mark.parametrize(
    ("content_type", "body"), [(JSON, body_of(*[1] * (MAX_EVENTS + 1))), (PROTOBUF, b"\x00" * (MAX_EVENTS + 1))]
)
def test_a_body_of_too_many_events_is_refused(content_type: str, body: bytes) -> None:
    with pytest.raises(BodyTooLargeError):
        validate(body, content_type)


def test_a_content_type_may_have_parameters() -> None:
    assert validator().body_format("Application/JSON; charset=utf-8") is validator().body_format(JSON)
    with pytest.raises(UnsupportedMediaTypeError):
        validator().body_format("text/plain")
