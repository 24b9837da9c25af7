"""The answers to the questions about subscriptions, by looking at every period of every subscription on each day."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from tests.answers.figures import FIGURES, ago, grouped
from tests.answers.of_all_games import Rows
from tests.answers.of_money import RATES
from tests.answers.play import TODAY, Event
from tests.answers.rounding import cents, share

# As contracts/money.yaml has them.
_GRACE = {"app_store": timedelta(days=16), "google_play": timedelta(days=7)}
_STARTS = ("purchase", "subscription_started")
_RENEWAL, _CANCELLATION, _GRACE_EVENT = "subscription_renewed", "subscription_cancelled", "subscription_in_grace"
_NAMES = (*_STARTS, _RENEWAL, _CANCELLATION, _GRACE_EVENT, "refund")
_MONTH = timedelta(days=30, hours=10, minutes=30)


@dataclass(frozen=True, slots=True)
class Period:
    """One paid period: all events of a player's subscription with the same end."""

    paid_until: datetime
    events: Sequence[Event]

    def first(self, *names: str) -> datetime | None:
        return min((event.event_time for event in self.events if event.event_name in names), default=None)

    @property
    def begins(self) -> datetime:
        return self.first(*_STARTS, _RENEWAL) or min(event.event_time for event in self.events)

    @property
    def access_until(self) -> datetime:
        """The end of access if no other period followed."""
        end, cancelled, refunded = self.paid_until, self.first(_CANCELLATION), self.first("refund")
        if self.first(_GRACE_EVENT) is not None:
            end += max(_GRACE.get(event.store or "", timedelta()) for event in self.events)
            if cancelled is not None:
                end = min(end, max(cancelled, self.paid_until))
        return max(self.begins, min(end, refunded or end))

    @property
    def is_refunded(self) -> bool:
        """True if a refund ended it."""
        refunded = self.first("refund")
        return refunded is not None and refunded <= self.access_until

    @property
    def sale(self) -> Event | None:
        """The latest sale event; None for a free trial, or if no event of it came."""
        names = (*_STARTS, _RENEWAL)
        sales = [event for event in self.events if event.event_name in names and event.price_micros]
        return max(sales, key=lambda event: (event.event_time, event.price_micros or 0), default=None)

    @property
    def monthly(self) -> float:
        """The price for a month, in its currency."""
        length = self.paid_until - self.begins
        price = (self.sale.price_micros or 0) / 1_000_000 if self.sale else 0.0
        return price if length < timedelta(days=1) else price * (_MONTH / length)


def periods_of(events: Iterable[Event]) -> list[Period]:
    """The periods of one player's subscription, the first one first."""
    by_end = grouped((event for event in events if event.paid_until), lambda event: event.paid_until)
    periods = [Period(end, of_end) for end, of_end in by_end.items() if end is not None]
    return sorted(periods, key=lambda each: (each.begins, each.paid_until))


def _subscriptions() -> dict[tuple[str, str, str], list[Period]]:
    events = (event for event in FIGURES.events if event.paid_until and event.event_name in _NAMES)
    by_key = grouped(events, lambda event: (event.game_name, event.gamer_id, event.product_id or ""))
    return {key: periods_of(of_key) for key, of_key in by_key.items()}


def newest_at(periods: Sequence[Period], moment: datetime) -> Period | None:
    """The period that has begun last before a moment."""
    begun = [period for period in periods if period.begins < moment]
    return begun[-1] if begun else None


def _followed(periods: Sequence[Period], place: int) -> bool:
    """True if the next period began before access ended."""
    return place + 1 < len(periods) and periods[place + 1].begins <= periods[place].access_until


def subscriptions_per_day() -> Rows:
    rows: Rows = []
    by_game = grouped(_subscriptions().items(), lambda each: each[0][0])
    for day in (ago(days) for days in range(30, -1, -1)):
        for game, subscriptions in by_game.items():
            of_game = [periods for _, periods in subscriptions]
            if day >= min(period.begins for periods in of_game for period in periods).date():
                rows.append((day, game, *_figures(of_game, day)))
    return rows


def _figures(subscriptions: Sequence[Sequence[Period]], day: date) -> tuple[object, ...]:
    night = datetime.combine(day + timedelta(days=1), time(), UTC)
    newest = (newest_at(periods, night) for periods in subscriptions)
    active = [period for period in newest if period is not None and period.access_until >= night]
    every = [period for periods in subscriptions for period in periods]
    begun = [period for period in every if period.begins.date() == day]
    ended = [
        period
        for periods in subscriptions
        for place, period in enumerate(periods)
        if period.access_until.date() == day and not _followed(periods, place)
    ]
    started = sum(period.first(*_STARTS) is not None for period in begun)
    renewed = sum(period.first(*_STARTS) is None and period.first(_RENEWAL) is not None for period in begun)
    cancelled = [moment for period in every if (moment := period.first(_CANCELLATION)) and moment.date() == day]
    priced = [period for period in active if period.sale is not None]
    known = [(period, RATES[currency]) for period in priced if (currency := _currency(period)) in RATES]
    mrr = sum(period.monthly * rate for period, rate in known)
    refunded = sum(period.is_refunded for period in ended)
    counts = (len(active), started, renewed, len(cancelled), len(ended), refunded)
    return (*counts, cents(mrr), len(priced) - len(known))


def _currency(period: Period) -> str:
    return (period.sale.currency if period.sale else None) or ""


def subscription_renewals() -> Rows:
    over = [
        (period.paid_until.replace(day=1, hour=0, minute=0, second=0, microsecond=0), game, product, periods, place)
        for (game, _, product), periods in _subscriptions().items()
        for place, period in enumerate(periods)
        if period.paid_until < datetime.combine(TODAY, time(), UTC)
    ]
    rows: Rows = []
    for key, group in grouped(over, lambda each: each[:3]).items():
        renewed = sum(_followed(periods, place) for *_, periods, place in group)
        names = (_CANCELLATION, _GRACE_EVENT, "refund")
        counts = (sum(periods[place].first(name) is not None for *_, periods, place in group) for name in names)
        rows.append((*key, len(group), renewed, *counts, share(renewed, len(group))))
    return rows


OF_SUBSCRIPTIONS: Mapping[str, Callable[[], Rows]] = {
    each.__name__: each for each in (subscriptions_per_day, subscription_renewals)
}
