"""Values at and beyond each limit, and what the documents say becomes of them."""

import json
import uuid
from collections.abc import Mapping

from tests.embedded.submitted_values import GAME, INT32, INT64, NAMES, ODD_TEXTS, Fields, Moment, SubmittedEvent, ago

# Changes to a good event, which stays an event that the gateway accepts.
_VALUES: Mapping[str, Fields] = {
    "only the required fields": {},
    "all messages without fields": {"event_params": {}, "purchase": {}, "error": {}, "personal": {}},
    "the least whole numbers": {
        "event_params": {"score_adjustment": INT32[0], "level": INT32[0]},
        "purchase": {"price_micros": INT64[0], "quantity": INT32[0]},
        "error": {"response_ms": INT64[0]},
    },
    "the greatest whole numbers": {
        "event_params": {"score_adjustment": INT32[1], "level": INT32[1]},
        "purchase": {"price_micros": INT64[1], "quantity": INT32[1]},
        "error": {"response_ms": INT64[1]},
    },
    "zeros that are not absent": {"event_params": {"score_adjustment": 0, "level": 0, "amount": 0.0}},
    "minus zero": {"event_params": {"amount": -0.0}},
    "the smallest number": {"event_params": {"amount": 5e-324}},
    "a number without an exact binary form": {"event_params": {"amount": 0.1}},
    "the greatest amount": {"event_params": {"amount": 1_000_000.0}},
    "the least amount": {"event_params": {"amount": -1_000_000.0}},
    "an amount that no rule lets into silver": {"event_params": {"amount": 10_000.000_000_000_002}},
    "the first second of the calendar": {"event_params": {"client_event_time": Moment(-62_135_596_800)}},
    "the last moment of the calendar": {"event_params": {"client_event_time": Moment(253_402_300_799, 999_999_999)}},
    "the moment before 1970": {"event_params": {"client_event_time": Moment(-1, 999_999_999)}},
    "an old event": {"event_time": ago(days=399)},
    "an event ahead of its time": {"event_time": ago(hours=-47)},
    "an ingest time of the sender": {"ingest_time": Moment(0)},
    "empty texts": {
        "session_id": "",
        "event_params": {"platform": "", "app_version": "", "country": ""},
        "experiment_ids": ["", ""],
        "attributes": {"": ""},
    },
    "names that differ only in case": {"attributes": {"name": "a", "Name": "b", "NAME": "c"}},
    "names that mean something to a program": {"attributes": {name: name for name in NAMES}},
    "ten thousand attributes": {"attributes": {f"name {number}": str(number) for number in range(10_000)}},
    "the longest text": {"attributes": {"x" * 4_096: "y" * 4_096}},
    "four bytes a character, up to the bound": {"event_params": {"platform": "\U00020bb7" * 64}},
    "the largest event that Kafka accepts": {"attributes": {f"{number:04}": "x" * 4_086 for number in range(229)}},
}
_TEXTS: Mapping[str, Fields] = {
    f"the text {text[:20]!a}": {
        "event_name": text,
        "gamer_id": text,
        "session_id": text,
        "event_params": {"platform": text, "app_version": text, "country": text, "device_id": text},
        "experiment_ids": [text, text],
        "attributes": {text: text},
        "error": {"code": text},
        "personal": {"free_text": text},
    }
    for text in (*ODD_TEXTS, *NAMES)
    if text
}
ACCEPTED = {**_VALUES, **_TEXTS}

_GOOD = SubmittedEvent({}).json(escaped=True)


def _changed(**texts: str) -> str:
    """A good event in JSON, with fields appended as they are written, which count if it has them already."""
    return _GOOD[:-1] + "".join(f', "{name}": {text}' for name, text in texts.items()) + "}"


# JSON events, and the reason and field with which each is rejected.
REJECTED: Mapping[str, tuple[str, str, str]] = {
    "no field": ("{}", "no_event_id", "event_id"),
    "null": ("null", "malformed", ""),
    "an unknown field": (_changed(more="1"), "unknown_field", ""),
    "__proto__": (_changed(__proto__="{}"), "unknown_field", ""),
    "a field in another case": (_changed(Event_Name='"x"'), "unknown_field", ""),
    "an unknown parameter": (_changed(event_params='{"a.b/c": 1}'), "unknown_field", "event_params"),
    "ten thousand parameters": (
        _changed(event_params="{" + ", ".join(f'"p{number}": 1' for number in range(10_000)) + "}"),
        "unknown_field",
        "event_params",
    ),
    "a number one beyond int32": (_changed(event_params=f'{{"level": {2**31}}}'), "wrong_type", "event_params.level"),
    "a number one beyond int64": (
        _changed(purchase=f'{{"price_micros": {2**63}}}'), "wrong_type", "purchase.price_micros"),
    "a number of many digits": (
        _changed(event_params=f'{{"level": {"9" * 4_000}}}'), "wrong_type", "event_params.level"),
    "a fraction for a whole number": (_changed(event_params='{"level": 0.5}'), "wrong_type", "event_params.level"),
    "a text for a number": (_changed(event_params='{"amount": "NaN"}'), "wrong_type", "event_params.amount"),
    "a truth for a number": (_changed(event_params='{"level": true}'), "wrong_type", "event_params.level"),
    "a truth for an amount": (_changed(event_params='{"amount": true}'), "wrong_type", "event_params.amount"),
    "a number for a truth": (_changed(error='{"fatal": 2}'), "wrong_type", "error.fatal"),
    "a number for a name": (_changed(connection_type="true"), "wrong_type", "connection_type"),
    "an amount beyond the bound": (
        _changed(event_params='{"amount": 1000000.0000000001}'), "implausible_amount", "event_params.amount"),
    "the largest number": (
        _changed(event_params='{"amount": 1.7976931348623157e308}'), "implausible_amount", "event_params.amount"),
    "the year 1": (_changed(event_time='"0001-01-01T00:00:00Z"'), "implausible_event_time", "event_time"),
    "the year 9999": (_changed(event_time='"9999-12-31T23:59:59Z"'), "implausible_event_time", "event_time"),
    "the year 10000": (_changed(event_time='"10000-01-01T00:00:00Z"'), "wrong_type", "event_time"),
    "1970": (_changed(event_time='"1970-01-01T00:00:00Z"'), "implausible_event_time", "event_time"),
    "no time": (_changed(event_time='""'), "wrong_type", "event_time"),
    "a null for the time": (_changed(event_time="null"), "no_event_time", "event_time"),
    "a null in a list": (_changed(experiment_ids='["a", null]'), "wrong_type", "experiment_ids"),
    "a list in a list": (_changed(experiment_ids="[[]]"), "wrong_type", "experiment_ids"),
    "a null for an attribute": (_changed(attributes='{"a": null}'), "wrong_type", "attributes"),
    # The event next to them is accepted although the body is not JSON.
    "NaN": (_changed(event_params='{"amount": NaN}'), "malformed", ""),
    "Infinity": (_changed(event_params='{"amount": Infinity}'), "malformed", ""),
    "-Infinity": (_changed(event_params='{"amount": -Infinity}'), "malformed", ""),
    "a number beyond any double": (_changed(event_params='{"amount": 1e400}'), "malformed", ""),
    "a first half of a surrogate pair": (_changed(session_id='"\\ud800"'), "malformed", ""),
    "a second half of a surrogate pair": (_changed(attributes='{"\\udfb7": ""}'), "malformed", ""),
    "a control character": (_changed(session_id='"\0"'), "malformed", ""),
    "an unknown escape": (_changed(session_id='"\\x00"'), "malformed", ""),
    "deep nesting": (_changed(more="[" * 100_000 + "]" * 100_000), "malformed", ""),
    "a text that is too long": (_changed(session_id=f'"{"x" * 950_000}"'), "too_long", "session_id"),
    "an event too large for Kafka": (_changed(experiment_ids=json.dumps(["x" * 250] * 3_800)), "too_large", ""),
}  # fmt: skip

# Fields that only Protobuf can express, and with which reason and field the event is rejected.
REJECTED_PROTOBUF: Mapping[str, tuple[Fields, str, str]] = {
    name: ({"event_params": {"amount": amount}}, "implausible_amount", "event_params.amount")
    for name, amount in {
        "no number": float("nan"),
        "infinity": float("inf"),
        "minus infinity": float("-inf"),
        "the next number after the bound": 1_000_000.000_000_000_1,
    }.items()
} | {
    name: ({"event_time": time}, "implausible_event_time", "event_time")
    for name, time in {
        "the beginning of time": Moment(0),
        "before 1970": Moment(-1),
        "the least number of seconds": Moment(INT64[0]),
        "the greatest number of seconds": Moment(INT64[1]),
    }.items()
}

# Bodies none of whose events is accepted.
REFUSED: Mapping[str, tuple[str, int]] = {
    "a text without an end": (_changed(session_id='"'), 400),
    "a list without an end": (_changed(experiment_ids="["), 400),
    "a text of 5 MB": (_changed(session_id=f'"{"x" * 5_000_000}"'), 413),
}

# JSON that names a field twice, and what counts of it.
TWICE: Mapping[str, tuple[str, Fields]] = {
    "another value": ('"session_id": "first", "session_id": "second"', {"session_id": "second"}),
    "a wrong type before": ('"session_id": 5, "session_id": "second"', {"session_id": "second"}),
    "an attribute": ('"attributes": {"a": "1", "a": "2"}', {"attributes": {"a": "2"}}),
    "messages, which are not merged": (
        '"event_params": {"level": 1}, "event_params": {"country": "DE"}', {"event_params": {"country": "DE"}}),
}  # fmt: skip


def twice() -> dict[str, tuple[str, SubmittedEvent]]:
    """Events of `TWICE` in JSON, and what each must become, by name."""
    found = {}
    for name, (text, counts) in TWICE.items():
        event = SubmittedEvent(counts, str(uuid.uuid4()))
        without = SubmittedEvent({}, event.event_id).json(escaped=True)
        found[name] = (f"{without[:-1]}, {text}}}", event)
    return found


# Changes to a good event that arrives through Kafka without the gateway, and becomes a row.
ROWS_BY_KAFKA: Mapping[str, Fields] = {
    "no name": {"game_name": GAME, "event_name": None},
    "no player": {"game_name": GAME, "gamer_id": None},
}


def _lakes(**changes: object) -> bytes:
    return SubmittedEvent({"game_name": GAME} | changes).protobuf()


# Bodies that arrive through Kafka without the gateway, and the reason of their dead letters.
DEAD_LETTERED: Mapping[str, tuple[bytes, str]] = {
    f"an amount of {amount}": (_lakes(event_params={"amount": amount}), "implausible_amount")
    for amount in (float("nan"), float("inf"), float("-inf"), 1_000_000.000_000_000_1, -1.7976931348623157e308)
} | {
    f"{seconds} seconds": (_lakes(event_time=Moment(seconds)), "implausible_event_time")
    for seconds in (0, -1, *INT64, -62_135_596_800, 253_402_300_799)
} | {
    f"the game {name[:20]!a}": (_lakes(game_name=name), "unroutable")
    for name in ("", GAME.upper(), f"{GAME} ", f"{GAME}\0", "../../etc", "a/b", "x" * 5_000, "\U00020bb7", "events")
} | {
    "a text of 5 MB": (_lakes(session_id="\u05d0" * 2_500_000), "too_long"),
    "a value of 5 MB in a map": (_lakes(attributes={"": "x" * 5_000_000}), "too_long"),
    "nothing": (b"", "no_event_time"),
    "no time": (_lakes(event_time=None), "no_event_time"),
    "no UTF-8": (_lakes() + b"\x3a\x01\xff", "undecodable"),
    "half of a surrogate pair": (_lakes() + b"\x3a\x03\xed\xa0\x80", "undecodable"),
    "a length beyond the end": (_lakes() + b"\x3a\x7f", "undecodable"),
}  # fmt: skip
