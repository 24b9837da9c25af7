"""Events of the submitted contract, whole and damaged, in both formats of bodies."""

import copy
import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from services.gateway.events.validation import PROTOBUF
from services.sdk.batches import delimited
from tests.unit.gateway.events import an_event, submitted

# The same for all examples: hypothesis runs them again.
NOW = datetime.now(UTC)
PLAYERS = ("ann", "bob", "çelik")
SECRETS = ("mail@example.org", "192.0.2.7", "Ann Example", "call me on 555-0100", "device-4711", *PLAYERS)


def message_of(event: dict[str, Any]) -> Message:
    """The event as a message of the submitted contract."""
    return json_format.ParseDict(event, GetMessageClass(submitted())(), descriptor_pool=submitted().file.pool)


def protobuf_body(*events: dict[str, Any]) -> bytes:
    return joined(PROTOBUF, [message_of(event).SerializeToString(deterministic=True) for event in events])


def written(content_type: str, event: dict[str, Any]) -> bytes:
    """The event as a message or a text."""
    return message_of(event).SerializeToString() if content_type == PROTOBUF else json.dumps(event).encode()


def joined(content_type: str, events: Sequence[bytes]) -> bytes:
    """A body of the texts or messages of events."""
    return b"".join(map(delimited, events)) if content_type == PROTOBUF else b'{ "events": [%s]}' % b" ,".join(events)


def a_full_event(player: str = "ann") -> dict[str, Any]:
    """A valid event with a value in nearly every field."""
    return an_event(
        event_id="8f14e45f-ceea-467f-a8d6-0a1b2c3d4e5f",
        event_time=NOW.isoformat(),
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


_WORDS = st.one_of(st.text(max_size=8), st.sampled_from(["", "Archery Duel", "Bingo Harbor", "\0", "ä", "1", *PLAYERS]))
_TIMES = st.one_of(
    st.sampled_from([
        "2026-01-01T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00", "1969-12-31T23:59:59.9999999Z",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00+00:00", "2026-01-01 00:00Z", "20260101T000000Z", "2026-01-01T00:00:00+23:60", "",
        "2026-01-01T00:00:00.123456789Z", "2262-04-11T23:47:16.854775807Z", "2262-04-12T00:00:00Z", "1677-01-01T00:00Z",
    ]),
    st.integers(0, 2**31).map(lambda each: datetime.fromtimestamp(each, UTC).isoformat()),
)  # fmt: skip
_NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, -1, 2**31, 2**31 - 1, -(2**31), 2**63, 3.0]),
    st.floats(allow_nan=False, allow_infinity=False),
)
_ANYTHING: st.SearchStrategy[object] = st.one_of(
    _WORDS, _TIMES, _NUMBERS, st.booleans(), st.none(), st.just([]), st.just({}), st.just(["a", None]),
    st.just({"a": None}), st.just({"a": "b"}), st.just({"seconds": 1, "nanos": 0}),
    st.sampled_from(["CONNECTION_TYPE_WIFI", "CONNECTION_TYPE_NONE", str(uuid.uuid4())]),
)  # fmt: skip
_FIELDS = [field.name for field in submitted().fields]
_INNER = {
    field.name: [inner.name for inner in field.message_type.fields]
    for field in submitted().fields
    if field.message_type is not None and not field.is_repeated and "Timestamp" not in field.message_type.name
}


@st.composite
def damaged_event(draw: st.DrawFn, players: st.SearchStrategy[str]) -> dict[str, Any]:
    """A valid event of one of the players, often with a changed value in one or two fields."""
    event = copy.deepcopy(a_full_event(draw(players)))
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from([*_FIELDS, "unknown"]))
        if name in _INNER and draw(st.booleans()):
            event[name] = event.get(name) if isinstance(event.get(name), dict) else {}
            event[name][draw(st.sampled_from([*_INNER[name], "unknown"]))] = copy.deepcopy(draw(_ANYTHING))
        elif draw(st.booleans()):
            event.pop(name, None)
        else:
            event[name] = copy.deepcopy(draw(_ANYTHING))
    return event


# An empty string, an unknown field, and two fields of another wire type.
_CHANGES = (b"\x0a\x00", b"\xfa\x7d\x00", b"\x58\x01", b"\x18\x05")


@st.composite
def damaged_message(draw: st.DrawFn, players: st.SearchStrategy[str]) -> bytes:
    """A valid message of one of the players, often with bytes changed, inserted or appended."""
    message = message_of(a_full_event(draw(players))).SerializeToString(deterministic=True)
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(message)))
        some = draw(st.one_of(st.binary(max_size=4), st.sampled_from(_CHANGES)))
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


# None of them is a JSON value.
BROKEN_VALUES = (
    b"NaN", b"-Infinity", b"1e999", b"-" + b"9" * 5_000, b"01", b"1.", b"+1", b"undefined", b"'text'", b"\xff",
    rb'"\ud83d"', rb'"\udc00x"', rb'"\x41"', rb'"\u12"', b'"\xed\xa0\x80"', b'"\xff\xfe"', b'"\n"', b'"\0"', b'"a" "b"',
    b"[1,]", b"[,]", b"[1}", b'{"a":1,}', b'{"a" 1}', b'{"a":}', b"{a:1}", b"[" * 5_000 + b"]" * 5_000,
    b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b"/* a comment */ 1", b"",
)  # fmt: skip


def with_broken_value(event: dict[str, Any], value: bytes) -> bytes:
    """The event as text, with a broken value in an attribute."""
    return json.dumps(event | {"attributes": {"a": "@"}}).encode().replace(b'"@"', value)


def damaged_text(players: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    """The text of an event, which may break the contract or JSON; its quotes and brackets match."""
    events = damaged_event(players)
    # By their numbers: some are so long that hypothesis would warn about them.
    broken = st.sampled_from(range(len(BROKEN_VALUES))).map(BROKEN_VALUES.__getitem__)
    no_event = st.sampled_from([b"null", b"1", b'"text"', b"[]", b"[{}]", b"{}", b"a b", b'{"a":1]', b"\xff"])
    return st.one_of(
        st.builds(lambda event, escaped: json.dumps(event, ensure_ascii=escaped).encode(), events, st.booleans()),
        st.builds(with_broken_value, events, broken),
        no_event,
    )
