"""Some weeks of play in three games, made from a seed; it never changes, whatever day it is."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta

TODAY = date(2026, 6, 17)
DAYS = 45
GAMES = {"Archery Duel": "archery_duel", "Bingo Harbor": "bingo_harbor", "Kart Rumble": "kart_rumble"}
ONE_GAME = "Kart Rumble"

_PLATFORMS, _VERSIONS = ("android", "ios", "web"), ("1.8", "1.9", "1.10")
_PRODUCTS = {"gems": 0.99, "season_pass": 9.99, "chest": 24.99}
_PLAYERS_PER_GAME = 20
_SUBSCRIBERS_PER_GAME = 15
# Countries of players, with their currency and how many of its units a US dollar is; CLP has no rate.
PLACES = (("US", "USD", 1), ("DE", "EUR", 0.5), ("JP", "JPY", 100), ("CL", "CLP", 900), (None, None, 1))
_LOADING = ("session_start", "level_started")
# Sources of players.
_SOURCES = ("organic", "meta", "google", None)
# This game sends version 3 of the event: neither resources nor load times.
WITHOUT_RESOURCES = "Bingo Harbor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event, with the columns that questions read."""

    event_time: datetime
    event_name: str
    game_name: str
    gamer_id: str
    session_id: str | None
    platform: str | None
    app_version: str | None
    amount: float | None = None
    country: str | None = None
    currency: str | None = None
    price_micros: int | None = None
    order_id: str | None = None
    store: str | None = None
    paid_until: datetime | None = None
    ingest_time: datetime | None = None
    product_id: str | None = None
    quantity: int | None = None
    level: int | None = None
    fatal: bool | None = None
    device_id: str | None = None
    client_event_time: datetime | None = None
    experiment_ids: list[str] | None = field(default=None, hash=False)
    load_ms: int | None = None
    resource: tuple[str, int, str] | None = None
    install_source: str | None = None

    @property
    def day(self) -> date:
        return self.event_time.date()

    @property
    def paid(self) -> float:
        """What was paid by a purchase; 0 for everything else."""
        return self.amount or 0.0 if self.event_name == "purchase" else 0.0

    @property
    def is_purchase(self) -> bool:
        """True if it is a purchase whose price is known."""
        return self.event_name == "purchase" and self.amount is not None


@dataclass(frozen=True, slots=True)
class _Player:
    game_name: str
    gamer_id: str
    platform: str
    first_day: int
    generosity: float
    place: tuple[str | None, str | None, float]
    enrolled: bool
    clock_off: timedelta


def known_events() -> list[Event]:
    """All events, in no order that means anything."""
    chance = random.Random(6)
    events: list[Event] = []
    for game, name in GAMES.items():
        for number in range(_PLAYERS_PER_GAME):
            player = _Player(
                game,
                f"{name}-{number:02d}",
                chance.choice(_PLATFORMS),
                chance.randrange(1, DAYS),
                chance.choice((0.0, 0.0, 0.05, 0.2)),
                PLACES[number % len(PLACES)],
                chance.random() < 0.4,
                timedelta(seconds=chance.choice((0, 0, 3, -90, 4000))),
            )
            life = [_with_source(event, number) for event in _life(player, chance)]
            events += life
            events += _receipt(life[-1]) if number % 4 == 0 else ()
            events += _refunds(life) if number % 3 else ()
            events += _sent_again(life) if number % 4 == 1 else ()
        events.append(_smoke_test(game))
    return [*events, *subscription_events(list(GAMES))]


def _receipt(last: Event) -> Iterator[Event]:
    """A purchase that the game's server reports: it knows the player and the platform, and no session."""
    yield Event(
        event_time=last.event_time + timedelta(minutes=7), event_name="purchase", game_name=last.game_name,
        gamer_id=last.gamer_id, session_id=None, platform=last.platform, app_version=None, amount=4.99,
    )  # fmt: skip


def _refunds(life: list[Event]) -> Iterator[Event]:
    """Refunds of a player's first order, on the day after it: twice, as a store sends them again."""
    for bought in [event for event in life if event.order_id][:1]:
        for hours in (24, 26):
            yield replace(
                bought, event_time=bought.event_time + timedelta(hours=hours), event_name="refund", amount=None,
                session_id=None, app_version=None, ingest_time=None, client_event_time=None,
            )  # fmt: skip


def _with_source(event: Event, number: int) -> Event:
    """A session begins with the source of its player."""
    return replace(event, install_source=_SOURCES[number % 4]) if event.event_name == "session_start" else event


def _sent_again(life: list[Event]) -> Iterator[Event]:
    """A player's first order, sent again on the next day at a higher price, as after a restored purchase."""
    for bought in [event for event in life if event.order_id][:1]:
        yield replace(
            bought, event_time=bought.event_time + timedelta(hours=25), amount=None, session_id=None, app_version=None,
            price_micros=(bought.price_micros or 0) + 1_000_000, ingest_time=None, client_event_time=None,
        )  # fmt: skip


def subscription_events(games: Sequence[str]) -> list[Event]:
    """Subscriptions of seven days, by players who do nothing else that day, in any order of arrival."""
    chance = random.Random(8)
    events = [
        event
        for game in games
        for number in range(_SUBSCRIBERS_PER_GAME)
        for event in _subscription(game, number, chance)
    ]
    again = [
        replace(event, event_time=event.event_time + timedelta(hours=chance.choice((1, 30))))
        for event in chance.sample(events, len(events) // 6)
    ]
    past = [event for event in (*events, *again) if event.event_time < _at(0, time(9))]
    chance.shuffle(past)
    return past


def _subscription(game: str, number: int, chance: random.Random) -> Iterator[Event]:
    country, currency, units = PLACES[number % len(PLACES)]
    store = ("app_store", "google_play", "web_shop")[number % 3]
    moment = _at(chance.randrange(3, 36), time(hour=chance.randrange(24), minute=chance.randrange(60)))
    is_trial, lacks_start = number % 5 == 1, number % 7 == 2
    for period in range(6):
        price = 0 if is_trial and period == 0 else round((9 + period % 2) * units * 1_000_000)
        sold = Event(
            event_time=moment, event_name="subscription_renewed" if period else "subscription_started",
            game_name=game, gamer_id=f"{GAMES[game]}-{number:02d}", session_id=None,
            platform=("ios", "android", "web")[number % 3], app_version=None, country=country, currency=currency,
            price_micros=price, order_id=f"{game}/vip/{number}/{period}" if number % 4 else None, store=store,
            product_id="vip", paid_until=moment + timedelta(days=7), quantity=1,
        )  # fmt: skip
        paid_until = moment + timedelta(days=7)
        if period or not lacks_start:
            yield sold
        if chance.random() < 0.15:
            refund = replace(sold, event_name="refund", event_time=moment + timedelta(hours=chance.randrange(150)))
            yield refund
        silent = replace(sold, price_micros=0, order_id=None)
        if chance.random() < 0.2:
            hours = chance.randrange(240)
            yield replace(silent, event_name="subscription_cancelled", event_time=moment + timedelta(hours=hours))
        if chance.random() < 0.2:
            yield replace(silent, event_name="subscription_in_grace", event_time=paid_until)
            paid_until += timedelta(days=chance.choice((1, 5, 20)))
        elif chance.random() < 0.2:
            return
        moment = paid_until + timedelta(minutes=chance.randrange(-30, 30))
        if moment >= _at(0, time(9)):
            return


def _smoke_test(game: str) -> Event:
    return Event(
        event_time=_at(1, time(3)), event_name="smoke_test", game_name=game, gamer_id="smoke", session_id=None,
        platform=None, app_version=None,
    )  # fmt: skip


def _at(days_ago: int, moment: time) -> datetime:
    return datetime.combine(TODAY - timedelta(days=days_ago), moment, UTC)


def _life(player: _Player, chance: random.Random) -> Iterator[Event]:
    """A player's sessions, one after the other; who has been away for a while may never come back."""
    loyalty = chance.choice((0.1, 0.4, 0.8))
    last_day = chance.choice((0, 0, 10, 20))
    moment = _at(player.first_day, time(hour=chance.randrange(24), minute=chance.randrange(60)))
    session = 0
    while moment < _at(min(last_day, player.first_day - 1), time(9)):
        # A game may number the sessions of each player.
        for event in _session(player, f"session-{session}", moment, chance):
            yield event
            moment = event.event_time
        session += 1
        moment += timedelta(hours=chance.randrange(2, 30)) / loyalty


def _session(player: _Player, session: str, began: datetime, chance: random.Random) -> Iterator[Event]:
    version = _VERSIONS[min(len(_VERSIONS) - 1, (began.date() - (TODAY - timedelta(days=DAYS))).days // 16)]
    level, moment = chance.randrange(1, 34), began
    for step in range(chance.choice((1, 2, 5, 9, 14))):
        name = "session_start" if step == 0 else _event_name(player, chance)
        stamped = chance.random() < 0.5
        # A whole number of cents, and of milliseconds: what is compared to what must not hang on a rounding.
        price = chance.choice((*_PRODUCTS, None)) if name == "purchase" else None
        country, currency, units = player.place
        paid = None if price is None else round(_PRODUCTS[price] * units * 1_000_000)
        earned = 4_000 * level if name == "ad_viewed" and level % 2 else None
        yield Event(
            country=country,
            currency="USD" if earned else currency if paid and currency else None,
            price_micros=earned if earned else paid if currency else None,
            order_id=f"{player.gamer_id}/{session}/{step}" if paid and currency else None,
            event_time=moment,
            event_name=name,
            game_name=player.game_name,
            gamer_id=player.gamer_id,
            session_id=session,
            platform=player.platform,
            app_version=version,
            amount=_PRODUCTS[price] if price else None,
            ingest_time=moment + timedelta(seconds=chance.choice((1, 59, 3_600, 3_601, 9_000))) if stamped else None,
            product_id=price,
            quantity=chance.choice((1, 2)) if price else None,
            level=level,
            fatal=chance.random() < 0.3 if name == "error" else None,
            device_id=f"device of {player.gamer_id}",
            client_event_time=moment + player.clock_off if stamped else None,
            experiment_ids=None if version == _VERSIONS[0] else ["tutorial", "offer_b"] if player.enrolled else [],
            load_ms=400 + moment.microsecond // 300 if name in _LOADING else None,
            resource=_resource(name, moment, level),
        )
        moment += timedelta(milliseconds=chance.randrange(2_000, 500_000))
        level += name == "level_completed"


def _resource(name: str, moment: datetime, level: int) -> tuple[str, int, str] | None:
    """The item that the event changes, by how much and why; a level of yesterday gives far more than usual."""
    reward = 30 * level if moment.date() == TODAY - timedelta(days=1) else level
    changes = {
        "level_completed": ("coins", reward, "level_reward"),
        "level_started": ("energy", -5, "level_started"),
        "ad_viewed": ("energy", 20, "ad"),
        "purchase": ("gems", 80, "purchase"),
        "level_failed": ("coins", -3, ""),
    }
    return changes.get(name)


def _event_name(player: _Player, chance: random.Random) -> str:
    if chance.random() < player.generosity:
        return "purchase"
    return chance.choice(("level_started", "level_started", "level_completed", "level_failed", "error", "ad_viewed"))
