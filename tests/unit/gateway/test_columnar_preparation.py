"""Columns give the same records as events one by one, or leave a batch to be prepared one by one."""

import copy
import json
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from gamelake.privacy.vault.secrecy import PlayerKey
from gamelake.schemas.framing import HEADER_BYTES
from services.gateway.columns import ColumnarEncoder
from services.gateway.errors import Reason, RefusedError
from services.gateway.personal.fields import personal_fields
from services.gateway.personal.pseudonymization import PlayerCache, Pseudonymizer
from services.gateway.preparation import (
    BatchPreparer,
    ColumnarPreparer,
    EventBatch,
    PreparedBatch,
    RecordEncoder,
    RowPreparer,
    UnknownPlayers,
)
from services.gateway.validation import JSON, PROTOBUF
from tests.unit.gateway.events import GAME, SCHEMA_ID, an_event, body_of, contract, schema, submitted, validator
from tests.unit.properties import examples

# The same for all examples: hypothesis runs them again.
NOW = datetime.now(UTC).isoformat()
Write = Callable[..., bytes]
PLAYERS = ("ann", "bob", "çelik")
SECRETS = ("mail@example.org", "192.0.2.7", "Ann Example", "call me on 555-0100", "device-4711", *PLAYERS)


@cache
def players() -> PlayerCache:
    known = PlayerCache(max_players=10)
    known.add(GAME, {name: PlayerKey(GAME, name.encode().ljust(32)) for name in PLAYERS})
    return known


@cache
def pseudonymizer() -> Pseudonymizer:
    return Pseudonymizer(submitted(), personal_fields(submitted()))


@cache
def row_preparer() -> RowPreparer:
    return RowPreparer(validator(), players(), pseudonymizer(), RecordEncoder(SCHEMA_ID))


@cache
def columnar_preparer() -> ColumnarPreparer:
    encoder = ColumnarEncoder(schema().message, SCHEMA_ID, pseudonymizer().fields.vault)
    return ColumnarPreparer(contract(), players(), pseudonymizer(), encoder)


def batch_of(body: bytes, content_type: str) -> EventBatch:
    body_format = validator().body_format(content_type)
    return EventBatch(validator().game(GAME), body_format, body_format.split(body, 5000))


def message_of(event: dict[str, Any]) -> Message:
    return json_format.ParseDict(event, GetMessageClass(submitted())(), descriptor_pool=submitted().file.pool)


def delimited(*messages: bytes) -> bytes:
    return b"".join(bytes([len(each) & 0x7F | 0x80, len(each) >> 7]) + each for each in messages)


def protobuf_body(*events: dict[str, Any]) -> bytes:
    return delimited(*(message_of(event).SerializeToString(deterministic=True) for event in events))


def a_full_event(player: str = "ann") -> dict[str, Any]:
    return an_event(
        event_id="8f14e45f-ceea-467f-a8d6-0a1b2c3d4e5f",
        event_time=NOW,
        gamer_id=player,
        session_id="s-1",
        game_name="Archery Duel",
        event_params={"platform": "ios", "level": 0, "amount": 1.5, "score_adjustment": -3, "device_id": SECRETS[4],
                      "client_event_time": "2026-01-01T00:00:00.123456+02:00"},
        purchase={"product_id": "gems", "price_micros": -1},
        error={"code": "e", "fatal": True},
        experiment_ids=["a", "b"],
        attributes={"a": "b", "c": "d"},
        connection_type="CONNECTION_TYPE_WIFI",
        personal={"email": SECRETS[0], "ip_address": SECRETS[1], "player_name": SECRETS[2], "free_text": SECRETS[3]},
    )  # fmt: skip


def stored(prepared: PreparedBatch) -> list[tuple[str, bytes]]:
    return sorted((each.player.key.pseudonym, each.data) for each in prepared.personal_data)


def sent(prepared: PreparedBatch) -> list[tuple[str, Message]]:
    """Keys and events of the records, without the time of arrival."""
    found = []
    for record in prepared.records:
        event = GetMessageClass(schema().message).FromString(record["value"][HEADER_BYTES:])
        event.ClearField("ingest_time")
        found.append((record["key"], event))
    return found


def assert_the_same(batch: EventBatch) -> bool:
    """Compare the results of both preparers; gives whether the batch was prepared as columns."""
    (columnar,) = (
        columnar_preparer().prepare([batch]) if batch.body_format.supports_columns(batch.raw_events) else [None]
    )
    by_row = row_preparer().prepare(batch)
    if columnar is None:
        return False
    if isinstance(columnar, UnknownPlayers):
        assert isinstance(by_row, UnknownPlayers)
        assert set(columnar.names) == set(by_row.names)
        assert set(columnar.personal_data) == set(by_row.personal_data)
        return True
    assert isinstance(by_row, PreparedBatch)
    assert by_row.rejections == []
    assert sent(columnar) == sent(by_row)
    assert stored(columnar) == stored(by_row)
    return True


@pytest.mark.parametrize(("content_type", "write"), [(JSON, body_of), (PROTOBUF, protobuf_body)])
def test_a_valid_body_gives_the_same_records_as_columns_and_one_by_one(content_type: str, write: Write) -> None:
    events = [a_full_event(player) for player in PLAYERS] + [an_event(gamer_id="bob")] * 3

    assert assert_the_same(batch_of(write(*events), content_type))


@pytest.mark.parametrize(("content_type", "write"), [(JSON, body_of), (PROTOBUF, protobuf_body)])
def test_no_personal_data_is_left_in_the_records_of_columns(content_type: str, write: Write) -> None:
    (prepared,) = columnar_preparer().prepare(
        [batch_of(write(*(a_full_event(player) for player in PLAYERS)), content_type)]
    )

    assert isinstance(prepared, PreparedBatch)
    values = b"".join(record["key"].encode() + record["value"] for record in prepared.records)
    assert [secret for secret in SECRETS if secret.encode() in values] == []
    assert len(prepared.personal_data) == len(PLAYERS)


@pytest.mark.parametrize(("content_type", "write"), [(JSON, body_of), (PROTOBUF, protobuf_body)])
def test_the_personal_data_of_unknown_players_is_the_same_from_columns_and_one_by_one(
    content_type: str, write: Write
) -> None:
    events = [a_full_event("new player"), a_full_event(), a_full_event("new player"), an_event(gamer_id="another")]

    assert assert_the_same(batch_of(write(*events), content_type))
    by_row = row_preparer().prepare(batch_of(write(*events), content_type))

    assert isinstance(by_row, UnknownPlayers)
    assert by_row.names == ["new player", "another"]
    assert [each.name for each in by_row.personal_data] == ["new player"]
    assert [secret for secret in SECRETS if secret in repr(by_row.personal_data)] == []


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "-Infinity", 1e308, -1e308, 1e13, 1_000_000.01])
def test_columns_do_not_take_an_implausible_amount(amount: object) -> None:
    body = protobuf_body(an_event(), an_event(event_params={"amount": amount}))

    assert columnar_preparer().prepare([batch_of(body, PROTOBUF)]) == [None]


@pytest.mark.parametrize("amount", [None, 0.0, -0.0, 5e-324, 1_000_000, -1_000_000])
def test_columns_take_any_other_amount(amount: float | None) -> None:
    assert assert_the_same(batch_of(protobuf_body(an_event(event_params={"amount": amount})), PROTOBUF))


def test_a_body_with_invalid_events_does_not_affect_the_others() -> None:
    preparer = BatchPreparer(row_preparer(), columnar_preparer(), min_columnar_events=2)
    good, bad = [a_full_event() for _ in range(50)], [a_full_event() for _ in range(50)]
    bad[3] |= {"event_time": "yesterday"}
    bad[7] |= {"event_id": "x"}
    no_message = delimited(message_of(good[0]).SerializeToString(), b"\xff\xff\xff")

    batchs = [
        batch_of(body_of(*good), JSON),
        batch_of(body_of(*bad), JSON),
        batch_of(body_of(*bad, {"no": "event"}), JSON),
        batch_of(protobuf_body(*good), PROTOBUF),
        batch_of(no_message, PROTOBUF),
        batch_of(body_of(a_full_event("new player")), JSON),
    ]
    first, second, third, fourth, fifth, sixth = preparer.prepare(batchs)

    assert isinstance(first, PreparedBatch)
    assert isinstance(fourth, PreparedBatch)
    assert (len(first.records), len(fourth.records)) == (50, 50)
    assert isinstance(second, PreparedBatch)
    assert isinstance(third, PreparedBatch)
    assert isinstance(fifth, PreparedBatch)
    wrong = [(3, Reason.WRONG_TYPE), (7, Reason.NO_EVENT_ID)]
    assert [(each.index, each.reason) for each in second.rejections] == wrong
    assert [(each.index, each.reason) for each in third.rejections] == [*wrong, (50, Reason.UNKNOWN_FIELD)]
    assert [(each.index, each.reason) for each in fifth.rejections] == [(1, Reason.MALFORMED)]
    assert isinstance(sixth, UnknownPlayers)
    assert sixth.names == ["new player"]
    assert [each.name for each in sixth.personal_data] == ["new player"]


def test_events_of_several_games_are_prepared_together() -> None:
    body_format = validator().body_format(JSON)
    theirs, other = validator().game(GAME), validator().game("bingo_harbor")
    raw_events = body_format.split(body_of(*(an_event(gamer_id="ann") for _ in range(30))), 100)
    foreign = body_format.split(body_of(*(an_event(gamer_id="ann", game_name="Bingo Harbor") for _ in range(30))), 100)

    accepted, wrong, unknown = BatchPreparer(row_preparer(), columnar_preparer(), min_columnar_events=2).prepare(
        [
            EventBatch(theirs, body_format, raw_events),
            EventBatch(theirs, body_format, foreign),
            EventBatch(other, body_format, raw_events),
        ]
    )

    assert isinstance(accepted, PreparedBatch)
    assert isinstance(wrong, PreparedBatch)
    assert {event.game_name for _, event in sent(accepted)} == {"Archery Duel"}  # type: ignore[attr-defined]
    assert {each.reason for each in wrong.rejections} == {Reason.OTHER_GAME}
    assert isinstance(unknown, UnknownPlayers)


WORDS = st.one_of(st.text(max_size=8), st.sampled_from(["", "Archery Duel", "Bingo Harbor", "\0", "ä", "1", *PLAYERS]))
TIMES = st.one_of(
    st.sampled_from([
        "2026-01-01T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00", "1969-12-31T23:59:59.9999999Z",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00+00:00", "2026-01-01 00:00Z", "20260101T000000Z", "2026-01-01T00:00:00+23:60", "",
        "2026-01-01T00:00:00.123456789Z", "2262-04-11T23:47:16.854775807Z", "2262-04-12T00:00:00Z", "1677-01-01T00:00Z",
    ]),
    st.integers(0, 2**31).map(lambda each: datetime.fromtimestamp(each, UTC).isoformat()),
)  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, -1, 2**31, 2**31 - 1, -(2**31), 2**63, 3.0]),
    st.floats(allow_nan=False, allow_infinity=False),
)
ANYTHING: st.SearchStrategy[object] = st.one_of(
    WORDS, TIMES, NUMBERS, st.booleans(), st.none(), st.just([]), st.just({}), st.just(["a", None]),
    st.just({"a": None}),     st.just({"a": "b"}),
    st.sampled_from(["CONNECTION_TYPE_WIFI", "CONNECTION_TYPE_NONE", str(uuid.uuid4())]),
)  # fmt: skip
FIELDS = [field.name for field in submitted().fields]
INNER = {
    field.name: [inner.name for inner in field.message_type.fields]
    for field in submitted().fields
    if field.message_type is not None and not field.is_repeated and "Timestamp" not in field.message_type.name
}


@st.composite
def damaged_events(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Valid events, some of which have another value in a field."""
    events = [copy.deepcopy(a_full_event(draw(st.sampled_from(PLAYERS)))) for _ in range(draw(st.integers(1, 4)))]
    for event in events:
        for _ in range(draw(st.integers(0, 2))):
            name = draw(st.sampled_from([*FIELDS, "unknown"]))
            if name in INNER and draw(st.booleans()):
                event[name] = event.get(name) if isinstance(event.get(name), dict) else {}
                event[name][draw(st.sampled_from([*INNER[name], "unknown"]))] = draw(ANYTHING)
            elif draw(st.booleans()):
                event.pop(name, None)
            else:
                event[name] = draw(ANYTHING)
    return events


@examples(150)
@given(damaged_events())
def test_columns_accept_only_json_that_is_accepted_one_by_one(events: Sequence[dict[str, Any]]) -> None:
    body = json.dumps({"events": events}).encode()

    assert_the_same(batch_of(body, JSON))


# An empty string, an unknown field, and two fields of another wire type.
CHANGES = (b"\x0a\x00", b"\xfa\x7d\x00", b"\x58\x01", b"\x18\x05")


@st.composite
def damaged_messages(draw: st.DrawFn) -> list[bytes]:
    """Valid messages, some of them with bytes changed, inserted or appended."""
    messages = [
        message_of(a_full_event(draw(st.sampled_from(PLAYERS)))).SerializeToString(deterministic=True)
        for _ in range(draw(st.integers(1, 4)))
    ]
    return [_damaged(draw, message) for message in messages]


def _damaged(draw: st.DrawFn, message: bytes) -> bytes:
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(message)))
        some = draw(st.one_of(st.binary(max_size=4), st.sampled_from(CHANGES)))
        message = draw(
            st.sampled_from(
                [
                    message[:place],
                    message[:place] + some + message[place + len(some) :],
                    message[:place] + some + message[place:],
                    message + some,
                    message + message,
                ]
            )
        )
    return message


@examples(150)
@given(damaged_messages())
def test_columns_accept_only_messages_that_are_accepted_one_by_one(messages: Sequence[bytes]) -> None:
    try:
        batch = batch_of(delimited(*messages), PROTOBUF)
    except RefusedError:  # one of them has become too long for its length
        return

    assert_the_same(batch)
