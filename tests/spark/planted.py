"""A week of good events, and kinds of damage that may be done to its last day."""

import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa

Event: TypeAlias = dict[str, Any]
Events: TypeAlias = list[Event]

DAY = date(2026, 1, 8)
EVENTS_A_DAY = 300
_TIME = pa.timestamp("us", "UTC")
_PURCHASE = pa.struct([("product_id", pa.string()), ("currency", pa.string()), ("quantity", pa.int64())])
SCHEMA = pa.schema(
    [
        ("event_time", _TIME),
        ("event_name", pa.string()),
        ("game_name", pa.string()),
        ("gamer_id", pa.string()),
        ("session_id", pa.string()),
        ("platform", pa.string()),
        ("app_version", pa.string()),
        ("amount", pa.float64()),
        ("ingest_time", _TIME),
        ("country", pa.string()),
        ("level", pa.int64()),
        ("score_adjustment", pa.int64()),
        ("referrer", pa.string()),
        ("purchase", _PURCHASE),
        ("kafka_partition", pa.int64()),
        ("kafka_offset", pa.int64()),
        ("event_id", pa.string()),
        ("event_date", pa.date32()),
    ]
)


def events(game: str, day: date, count: int = EVENTS_A_DAY) -> Events:
    """A good day: every second event is a purchase."""
    return [_event(game, day, number) for number in range(count)]


def week(game: str) -> Events:
    """The days before."""
    return [event for back in range(1, 8) for event in events(game, DAY - timedelta(days=back))]


def _event(game: str, day: date, number: int) -> Event:
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(minutes=10 * (number % 140))
    is_purchase = number % 2 == 0
    return {
        "event_time": moment,
        "event_name": "purchase" if is_purchase else "level_completed",
        "game_name": game,
        "gamer_id": f"p{number % 7}",
        "session_id": f"s{number % 20}",
        "platform": ("ios", "android", "web")[number % 3],
        "app_version": "1.2.3",
        "amount": 4.99 if is_purchase else None,
        "ingest_time": moment + timedelta(seconds=2),
        "country": "FI",
        "level": 1,
        "score_adjustment": 0,
        "referrer": None,
        "purchase": {"product_id": "gems", "currency": "USD", "quantity": 1} if is_purchase else None,
        "kafka_partition": number % 4,
        "kafka_offset": day.toordinal() * 1000 + number // 4,
        "event_id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{game} {day} {number}")),
        "event_date": day,
    }


def _first(**changes: object) -> Callable[[Events], Events]:
    """Damage to the day's first event, a purchase."""
    return lambda day: [{**day[0], **changes}, *day[1:]]


def _purchase(**changes: object) -> Callable[[Events], Events]:
    return lambda day: [{**day[0], "purchase": {**day[0]["purchase"], **changes}}, *day[1:]]


def _every(**changes: object) -> Callable[[Events], Events]:
    return lambda day: [{**event, **changes} for event in day]


def _without_hour(day: Events) -> Events:
    return [event for event in day if event["event_time"].hour != 9]


def _early(day: Events) -> Events:
    return [{**event, "event_time": event["event_time"].replace(hour=1)} for event in day]


def _more(day: Events) -> Events:
    return [{**event, "event_id": str(uuid.uuid4())} for event in day * 4]


# By the expectation that has to fail: what is done to a good day.
IN_BOTH_TABLES: Mapping[str, Callable[[Events], Events]] = {
    "event_id_is_a_uuid": _first(event_id="17"),
    "event_id_is_there": _first(event_id=""),
    "event_name_is_there": _first(event_name=""),
    "event_name_is_plain": _first(event_name="LevelUp"),
    "player_is_there": _first(gamer_id=None),
    "player_is_a_pseudonym": _first(gamer_id="ann@example.org"),
    "session_is_there": _first(session_id=""),
    "platform_is_known": _first(platform="amiga"),
    "app_version_is_a_version": _first(app_version="latest"),
    "amount_is_not_negative": _first(amount=-1.0),
    "amount_is_plausible": _first(amount=499_000.0),
    "amount_is_a_number": _first(amount=float("nan")),
    "amount_belongs_to_a_purchase": _first(event_name="session_start"),
    "purchase_has_its_amount": _first(amount=None),
    "purchase_names_a_product": _purchase(product_id=""),
    "purchase_currency_is_iso": _purchase(currency="dollars"),
    "purchase_quantity_is_positive": _purchase(quantity=0),
    "level_is_plausible": _first(level=-3),
    "country_is_iso": _first(country="Finland"),
    "clock_is_not_far_ahead": _first(ingest_time=datetime(2026, 1, 7, 20, tzinfo=UTC)),
    "event_ids_are_unique": lambda day: [*day, day[0]],
    "volume": lambda day: day[:140],
    "hours_are_there": _without_hour,
    "freshness": _early,
    "columns_are_the_same": _every(country=None),
    "platform_is_distributed_as_before": _every(platform="ios"),
    "event_name_is_distributed_as_before": _every(event_name="purchase"),
    "app_version_is_distributed_as_before": lambda day: [{**event, "app_version": "9.9.9"} for event in day],
}
OTHER_DAMAGE: Mapping[str, tuple[str, Callable[[Events], Events]]] = {
    "too_many": ("volume", _more),
    "a_new_column": ("columns_are_the_same", _every(referrer="friend")),
}
