"""The answers to the questions about money."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from tests.answers.figures import FIGURES, ago, grouped
from tests.answers.of_all_games import Rows
from tests.answers.play import PLACES, Event
from tests.answers.rounding import Rounded, cents, share

# As contracts/money.yaml has them.
_FEES = {"android": 0.15, "ios": 0.30, "web": 0.05}
_TAXES = {"DE": 0.19, "JP": 0.10}
_UNITS = {currency: units for _, currency, units in PLACES if currency not in {None, "CLP"}}
RATES = {currency: 1 / units for currency, units in _UNITS.items()}


def revenue_per_day() -> Rows:
    recent = (day for day in FIGURES.player_days if day.day >= ago(30))
    rows: Rows = []
    for (day, game), players in grouped(recent, lambda each: (each.day, each.game)).items():
        events = [event for player in players for event in player.events]
        ads = [event for event in events if event.event_name == "ad_viewed" and event.price_micros]
        sold, refunded, net = _sums(events)
        earned, count = sum(map(_dollars, ads)), len(players)
        without = sum(_is_money(event) and _currency(event) not in RATES for event in events)
        each = (Rounded(amount / count, 4) for amount in (net, earned, net + earned))
        rows.append((day, game, count, cents(sold), cents(refunded), cents(net), cents(earned), *each, without))
    return rows


def revenue_by_country() -> Rows:
    money = (event for event in FIGURES.events if event.day >= ago(30) and _is_sale_or_refund(event))
    rows: Rows = []
    for key, events in grouped(money, lambda event: (event.country or "~", _currency(event) or "~")).items():
        country, currency = (None if text == "~" else text for text in key)
        refunds = sum(event.event_name == "refund" for event in events)
        amounts = [cents(amount) for amount in _sums(events)] if currency in RATES else [None] * 3
        rows.append((country, currency, len(events) - refunds, refunds, *amounts))
    return rows


def refunds() -> Rows:
    orders = grouped((event for event in FIGURES.events if event.order_id), lambda event: event.order_id or "")
    bought = [next(event for event in events if event.event_name == "purchase") for events in orders.values()]
    given_back = {event.order_id for event in FIGURES.events if event.event_name == "refund"}
    rows: Rows = []
    by_month = grouped(bought, lambda event: (_month(event), event.game_name, event.currency))
    for (month, game, currency), group in by_month.items():
        back = [event for event in group if event.order_id in given_back]
        paid, refunded = (cents(sum(map(_price, each))) for each in (group, back))
        rows.append((month, game, currency, len(group), paid, len(back), refunded, share(len(back), len(group))))
    return rows


def _month(event: Event) -> datetime:
    return event.event_time.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _is_sale_or_refund(event: Event) -> bool:
    return event.event_name == "refund" or event.is_purchase


def _is_money(event: Event) -> bool:
    return _is_sale_or_refund(event) or (event.event_name == "ad_viewed" and event.price_micros is not None)


def _currency(event: Event) -> str | None:
    """The currency of an event; one that has bookings only is in US dollars."""
    return event.currency if event.price_micros is not None else "USD"


def _price(event: Event) -> float:
    return event.price_micros / 1_000_000 if event.price_micros is not None else event.amount or 0.0


def _dollars(event: Event) -> float:
    return _price(event) * RATES.get(_currency(event) or "", 0.0)


def _sums(events: Iterable[Event]) -> tuple[float, float, float]:
    """What was sold, given back, and what is left after tax and fee, in US dollars."""
    sold = refunded = net = 0.0
    for event in filter(_is_sale_or_refund, events):
        dollars = _dollars(event)
        sign = -1 if event.event_name == "refund" else 1
        sold, refunded = (sold, refunded + dollars) if sign < 0 else (sold + dollars, refunded)
        net += sign * dollars / (1 + _TAXES.get(event.country or "", 0)) * (1 - _FEES.get(event.platform or "", 0.30))
    return sold, refunded, net


OF_MONEY: Mapping[str, Callable[[], Rows]] = {
    each.__name__: each for each in (revenue_per_day, revenue_by_country, refunds)
}
