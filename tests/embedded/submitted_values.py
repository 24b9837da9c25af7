"""Events with any value that the contract lets in, as a game submits them, and the row that each must become."""

import json
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, TypeAlias

from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from gamelake.schemas.event_schemas import load_schema
from tests.support.table_values import Values
from tools.embedded.service import REPOSITORY

# An event's fields by the contract's names; one that is missing is absent.
Fields: TypeAlias = Mapping[str, Any]

SUBMITTED = GetMessageClass(load_schema(REPOSITORY / "contracts/submitted/v4", 4).message)
GAME = "Archery Duel"
PLAIN = "level_completed"
CONNECTIONS = ("CONNECTION_TYPE_UNSPECIFIED", "CONNECTION_TYPE_OFFLINE", "CONNECTION_TYPE_WIFI",
               "CONNECTION_TYPE_CELLULAR", "CONNECTION_TYPE_WIRED")  # fmt: skip
INT32, INT64 = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_800


@dataclass(frozen=True, slots=True)
class Moment:
    """A time as Protobuf has it."""

    seconds: int
    nanos: int = 0

    @property
    def text(self) -> str:
        """RFC 3339, with nanoseconds."""
        return f"{(_EPOCH + timedelta(seconds=self.seconds)).isoformat()[:19]}.{self.nanos:09}Z"

    @property
    def microseconds(self) -> int:
        """Since 1970; the last number of 64 bits for what is beyond (docs/appendix/dead-letters.md)."""
        return min(max(self.seconds * 1_000_000 + math.trunc(self.nanos / 1_000), INT64[0]), INT64[1])


def ago(**since: float) -> Moment:
    """A time before now."""
    return Moment(int((datetime.now(UTC) - timedelta(**since)).timestamp()), 123_456_789)


@dataclass(frozen=True, slots=True)
class SubmittedEvent:
    """An event of its own id; fields that are not given are those of a good event, and None makes one absent."""

    changes: Fields
    event_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    _good: Fields = field(
        default_factory=lambda: {"event_name": PLAIN, "event_time": ago(minutes=5), "gamer_id": "a player"}
    )

    @property
    def fields(self) -> Fields:
        """What is sent."""
        everything = {"event_id": self.event_id} | dict(self._good) | dict(self.changes)
        return {name: value for name, value in everything.items() if value is not None}

    def json(self, *, escaped: bool) -> str:
        """The event in JSON, with other characters than those of ASCII as escapes, or as they are."""
        return json.dumps(self.fields, ensure_ascii=escaped, default=lambda moment: moment.text)

    def protobuf(self) -> bytes:
        return bytes(SUBMITTED(**_with_times(self.fields)).SerializeToString())

    def row(self) -> Values:
        """The event's row, in the form of `tests.support.table_values`, without what the platform sets itself.

        An absent text is empty where Protobuf has no other way to say so, and null inside of an absent message. In the
        columns that all games share an empty text is null.
        """
        sent = self.fields
        params = sent.get("event_params")
        row: Values = {name: _text(sent, name) or None for name in ("session_id", "event_id", "event_name")}
        row |= {"game_name": sent.get("game_name") or GAME, "event_time": sent["event_time"].microseconds}
        row |= {name: _text(params, name) for name in ("game_keyword", "app_name")}
        row |= {name: _text(params, name) or None for name in ("platform", "app_version", "country")}
        # If the event came through the gateway, the vault has it.
        row |= {"device_id": None if params is None else ""}
        row |= {name: (params or {}).get(name) for name in ("score_adjustment", "level")}
        amount, client_time = ((params or {}).get(name) for name in ("amount", "client_event_time"))
        row |= {"amount": None if amount is None else float(amount).hex()}
        row |= {"client_event_time": None if client_time is None else client_time.microseconds}
        row |= {name: _message(sent.get(name), absent) for name, absent in _MESSAGES.items()}
        row |= {"load_ms": sent.get("load_ms")}
        row |= {"experiment_ids": tuple(sent.get("experiment_ids", ()))}
        row |= {"attributes": tuple(sorted(sent.get("attributes", {}).items()))}
        connection = sent.get("connection_type", 0)
        named = isinstance(connection, int) and connection in range(len(CONNECTIONS))
        return row | {"connection_type": CONNECTIONS[connection] if named else str(connection)}

    @property
    def quarantined_by(self) -> set[str]:
        """The rules of quality/rules/all_games.yaml that keep the event out of silver, of those in `QUARANTINING`."""
        amount = self.fields.get("event_params", {}).get("amount") or 0
        name = self.fields.get("event_name", "")
        rules = {
            "event_name_is_there": not name,
            "event_name_is_plain": not _is_plain(name),
            "player_is_there": not self.fields.get("gamer_id"),
            "amount_is_not_negative": amount < 0,
            "amount_is_plausible": amount > 10_000,
        }
        return {name for name, is_broken in rules.items() if is_broken}


# Rules of quality/rules/all_games.yaml; the others that quarantine can't be broken by events that the gateway accepts.
QUARANTINING = frozenset(
    {"event_name_is_there", "event_name_is_plain", "player_is_there", "amount_is_not_negative", "amount_is_plausible"}
)
_LONGEST_NAME = 63
# The nested messages, and what a field has that is not set.
_MESSAGES: Mapping[str, Fields] = {
    "purchase": {
        **dict.fromkeys(("product_id", "currency"), ""),
        "price_micros": 0,
        "quantity": 0,
        "store": "",
        "order_id": "",
        "paid_until": None,
    },
    "error": {"code": "", "fatal": False, "response_ms": None},
    "ad": {"network": "", "placement": "", "currency": "", "revenue_micros": 0},
    "resource": {"item": "", "change": 0, "balance": None, "reason": ""},
    "exposure": {"experiment": "", "variant": ""},
    "install": {"source": "", "campaign": ""},
}


def _text(message: Fields | None, name: str) -> str | None:
    return None if message is None else message.get(name, "")


def _message(sent: Fields | None, defaults: Fields) -> Fields | None:
    if sent is None:
        return None
    values = {name: sent.get(name, default) for name, default in defaults.items()}
    return {name: value.microseconds if isinstance(value, Moment) else value for name, value in values.items()}


def _is_plain(name: str) -> bool:
    is_ascii = not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789_")
    return is_ascii and len(name) <= _LONGEST_NAME and not name[:1].isdigit() and name[:1] != "_"


def _with_times(value: Any) -> Any:  # noqa: ANN401 # any field's value
    if isinstance(value, Moment):
        return {"seconds": value.seconds, "nanos": value.nanos}
    if isinstance(value, Mapping):
        return {name: _with_times(inner) for name, inner in value.items()}
    return value


def as_json(events: Sequence[SubmittedEvent], *, escaped: bool) -> bytes:
    return f'{{"events": [{", ".join(each.json(escaped=escaped) for each in events)}]}}'.encode()


# Names that are words or paths to some program, and names that differ only in case.
NAMES = ("select", "SELECT", "null", "NaN", "__proto__", "constructor", "a.b", "a/b", "../..", "a=b", "", " ", "`", '"',
         "a,b", "*", "event_time", "Event_Time", "__HIVE_DEFAULT_PARTITION__", "%00", "${a}", "{}", "[0]")  # fmt: skip
ODD_TEXTS = ("", " ", "\t\r\n", "\0", "a\0b", "\0\0", "e\u0301", "\u00e9", "\u05e9\u05dc\u05d5\u05dd", "\u202eabc",
             "\U00020bb7", "\U0001f469\u200d\U0001f467", "\U0010ffff", "\uffff", "\ufeff", "\u2028",
             "'; DROP TABLE x; --", "\\ud800", "\U0010ffff" * 40, "x" * 256)  # fmt: skip
TEXTS = st.one_of(st.sampled_from(ODD_TEXTS + NAMES), st.text(max_size=6))
_SOME_TEXT = TEXTS.filter(bool)
_AMOUNTS = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 0.1, 1e6, -1e6, 999_999.9999999999]),
    st.floats(-1e6, 1e6),
)
# Within the contract's limits by an hour, since Kafka's clock is a little later than the gateway's; of few days, since
# each day has files of its own.
_AGES = st.sampled_from([-400 * 86_400 + 3_600, -86_400, -1, 0, 47 * 3_600])
_NANOS = st.sampled_from([0, 1, 999, 1_000, 999_999_999])


def _whole(bounds: tuple[int, int]) -> st.SearchStrategy[int]:
    return st.sampled_from([*bounds, 0, -1]) | st.integers(*bounds)


def _moments(earliest: int, until: int) -> st.SearchStrategy[Moment]:
    return st.builds(Moment, st.sampled_from([earliest, until - 1]) | st.integers(earliest, until - 1), _NANOS)


# Only Protobuf has these: beyond the years of RFC 3339 and of 64 bits, and invalid nanoseconds.
_FAR = st.builds(Moment, _whole(INT64), st.sampled_from([*INT32, 0, -1, 10**9]))


class Reach(Enum):
    """The range of values: times of 64 bits of nanoseconds, as columns hold them.

    What JSON, what Protobuf expresses.
    """

    COLUMNS = "columns"
    JSON = "json"
    PROTOBUF = "protobuf"


def any_fields(reach: Reach) -> st.SearchStrategy[Fields]:
    """The fields of an event that the gateway accepts, each of them absent now and then."""
    now = int(datetime.now(UTC).timestamp())
    client_times = {
        Reach.COLUMNS: _moments(-(2**63) // 10**9 + 1, 2**63 // 10**9),
        Reach.JSON: _moments(_YEAR_1, _YEAR_10000),
        Reach.PROTOBUF: _FAR,
    }[reach]
    connections = st.sampled_from(CONNECTIONS) if reach is not Reach.PROTOBUF else _whole(INT32)
    params = {
        "platform": st.sampled_from(["ios", "android", "web"]) | TEXTS,
        **dict.fromkeys(("app_version", "country", "game_keyword", "app_name", "device_id"), TEXTS),
        **dict.fromkeys(("score_adjustment", "level"), _whole(INT32)),
        "amount": _AMOUNTS,
        "client_event_time": client_times,
    }
    purchase = {
        **dict.fromkeys(("product_id", "currency", "store", "order_id"), TEXTS),
        "price_micros": _whole(INT64),
        "quantity": _whole(INT32),
        "paid_until": client_times,
    }
    ad = {**dict.fromkeys(("network", "placement", "currency"), TEXTS), "revenue_micros": _whole(INT64)}
    resource = {**dict.fromkeys(("item", "reason"), TEXTS), **dict.fromkeys(("change", "balance"), _whole(INT64))}
    optional = {
        "event_name": st.sampled_from([PLAIN, "purchase", "session_start"]) | _SOME_TEXT,
        "event_time": st.builds(lambda since, nanos: Moment(now + since, nanos), _AGES, _NANOS),
        "ingest_time": client_times,
        "game_name": st.sampled_from(["", GAME]),
        "gamer_id": st.sampled_from(["ann", "bob"]) | _SOME_TEXT,
        "session_id": TEXTS,
        "event_params": st.fixed_dictionaries({}, optional=params),
        "purchase": st.fixed_dictionaries({}, optional=purchase),
        "ad": st.fixed_dictionaries({}, optional=ad),
        "resource": st.fixed_dictionaries({}, optional=resource),
        "exposure": st.fixed_dictionaries({}, optional=dict.fromkeys(("experiment", "variant"), TEXTS)),
        "install": st.fixed_dictionaries({}, optional=dict.fromkeys(("source", "campaign"), TEXTS)),
        "load_ms": _whole(INT64),
        "experiment_ids": st.lists(TEXTS, max_size=3),
        # The gateway reads Protobuf with empty ones event by event.
        "attributes": st.dictionaries(*[_SOME_TEXT if reach is Reach.COLUMNS else TEXTS] * 2, max_size=3),
        "connection_type": connections,
        "error": st.fixed_dictionaries(
            {}, optional={"code": TEXTS, "fatal": st.booleans(), "response_ms": _whole(INT64)}
        ),
        "personal": st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("email", "ip_address", "player_name", "free_text"), TEXTS)
        ),
    }
    return st.fixed_dictionaries({}, optional=optional)
