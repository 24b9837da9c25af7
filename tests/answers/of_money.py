"""The answers to the questions about money."""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from io import StringIO
from typing import Any

from gamelake.serving.money.store_reports import ReportingStore, StoreReport, read_report
from tests.answers.figures import FIGURES, ago, grouped
from tests.answers.of_all_games import Rows
from tests.answers.play import PLACES, TODAY, Event
from tests.answers.rounding import Rounded, cents, share

# As contracts/money.yaml has them.
_FEES = {"android": 0.15, "ios": 0.30, "web": 0.05}
_TAXES = {"DE": 0.19, "JP": 0.10}
_UNITS = {currency: units for _, currency, units in PLACES if currency not in {None, "CLP"}}
RATES = {currency: 1 / units for currency, units in _UNITS.items()}


def _counted() -> list[Event]:
    """Events with one sale and one refund per order: the first of each, at the price of the latest."""
    with_orders = [event for event in FIGURES.events if event.order_id and _is_sale_or_refund(event)]
    counted = [event for event in FIGURES.events if not (event.order_id and _is_sale_or_refund(event))]
    for events in grouped(with_orders, lambda event: (*_order(event), event.event_name == "refund")).values():
        in_order = sorted(events, key=lambda event: (event.event_time, event.price_micros or 0))
        latest = in_order[-1]
        counted.append(replace(in_order[0], price_micros=latest.price_micros, currency=latest.currency))
    return counted


def _order(event: Event) -> tuple[str, str, str]:
    return event.game_name, event.store or "", event.order_id or ""


def revenue_per_day() -> Rows:
    recent = (day for day in FIGURES.player_days if day.day >= ago(30))
    by_day = grouped(_COUNTED, lambda event: (event.day, event.game_name))
    rows: Rows = []
    for (day, game), players in grouped(recent, lambda each: (each.day, each.game)).items():
        events = by_day.get((day, game), [])
        ads = [event for event in events if event.event_name == "ad_viewed" and event.price_micros]
        sold, refunded, net = _sums(events)
        earned, count = sum(map(_dollars, ads)), len(players)
        without = sum(_is_money(event) and _currency(event) not in RATES for event in events)
        each = (Rounded(amount / count, 4) for amount in (net, earned, net + earned))
        rows.append((day, game, count, cents(sold), cents(refunded), cents(net), cents(earned), *each, without))
    return rows


def revenue_by_country() -> Rows:
    money = (event for event in _COUNTED if event.day >= ago(30) and _is_sale_or_refund(event))
    rows: Rows = []
    for key, events in grouped(money, lambda event: (event.country or "~", _currency(event) or "~")).items():
        country, currency = (None if text == "~" else text for text in key)
        refunds = sum(event.event_name == "refund" for event in events)
        amounts = [cents(amount) for amount in _sums(events)] if currency in RATES else [None] * 3
        rows.append((country, currency, len(events) - refunds, refunds, *amounts))
    return rows


def refunds() -> Rows:
    bought = [event for event in _COUNTED if event.order_id and _is_sale(event)]
    given_back = {_order(event): event for event in _COUNTED if event.order_id and event.event_name == "refund"}
    rows: Rows = []
    by_month = grouped(bought, lambda event: (_month(event), event.game_name, event.currency or "~"))
    for (month, game, text), group in by_month.items():
        currency = None if text == "~" else text
        back = [given_back[_order(event)] for event in group if _order(event) in given_back]
        paid, refunded = (cents(sum(map(_price, each))) for each in (group, back))
        rows.append((month, game, currency, len(group), paid, len(back), refunded, share(len(back), len(group))))
    return rows


def store_differences() -> Rows:
    reported = [(_day(line), line["game"], line) for line in _LINES]
    days = {(day, game) for day, game, _ in reported}
    sides: dict[tuple[Any, ...], list[float]] = defaultdict(lambda: [0, 0, 0.0, 0.0])
    for day, game, line in reported:
        side = sides[day, game, "android", line["Country of Buyer"] or "~", line["Currency of Sale"] or "~"]
        side[0] += _sign(line)
        side[2] += _sign(line) * float(line["Charged Amount"])
    for event in filter(_is_sale_or_refund, _COUNTED):
        if event.platform == "android" and (event.day, event.game_name) in days:
            sign = -1 if event.event_name == "refund" else 1
            side = sides[event.day, event.game_name, "android", event.country or "~", _currency(event) or "~"]
            side[1] += sign
            side[3] += sign * _price(event)
    return [
        (
            *(None if part == "~" else part for part in key),
            *side[:2],
            cents(side[2]),
            cents(side[3]),
            cents(side[2] - side[3]),
        )
        for key, side in sorted(sides.items())
        if side[0] != side[1] or abs(side[2] - side[3]) >= 0.005
    ]


def orders_that_differ() -> Rows:
    days = {(_day(line), line["game"]) for line in _LINES if _sign(line) > 0}
    reported = {line["Order Number"]: line for line in _LINES if _sign(line) > 0}
    counted = {
        event.order_id: event
        for event in _COUNTED
        if event.order_id and _is_sale(event) and event.platform == "android"
        and (event.day, event.game_name) in days
    }  # fmt: skip
    rows: Rows = []
    for order in reported.keys() | counted.keys():
        line, event = reported.get(order or ""), counted.get(order)
        prices = (float(line["Charged Amount"]) if line else None, _price(event) if event else None)
        if prices[0] != prices[1]:
            game = line["game"] if line else event.game_name if event else ""
            rounded = (None if price is None else cents(price) for price in prices)
            rows.append((game, order, _day(line) if line else None, event.day if event else None, *rounded))
    return sorted(rows, key=lambda row: row[:2])


def google_play_report(game: str) -> StoreReport:
    """The report of Google Play on a game: it lacks some of its orders, has others, and other prices."""
    text = StringIO()
    writer = csv.DictWriter(text, fieldnames=_LINES[0].keys())
    writer.writeheader()
    writer.writerows(line for line in _LINES if line["game"] == game)
    text.seek(0)
    return read_report(text, "report.csv", ReportingStore.GOOGLE_PLAY, "com.example.game", game)


def _lines() -> Iterator[Mapping[str, str]]:
    recent = (
        event
        for event in _COUNTED
        if event.order_id and event.price_micros and event.platform == "android" and ago(25) <= event.day < TODAY
    )
    for place, event in enumerate(sorted(recent, key=lambda event: (event.event_time, event.order_id or ""))):
        price = _price(event) + (1 if place % 7 == 1 else 0)
        line = {
            "game": event.game_name, "Package ID": "com.example.game", "SKU ID": event.product_id or "",
            "Order Number": f"unknown-{place}" if place % 7 == 3 else event.order_id or "",
            "Order Charged Date": f"{event.day:%b %d, %Y}" if place % 2 else str(event.day),
            "Financial Status": "Refund" if event.event_name == "refund" else "Charged",
            "Currency of Sale": event.currency or "", "Country of Buyer": event.country or "",
            "Charged Amount": f"{price:.6f}",
        }  # fmt: skip
        if place % 7 != 5:
            yield line


def _day(line: Mapping[str, str]) -> date:
    text = line["Order Charged Date"]
    return date.fromisoformat(text) if text[:1].isdigit() else datetime.strptime(text, "%b %d, %Y").date()  # noqa: DTZ007


def _sign(line: Mapping[str, str]) -> int:
    return -1 if line["Financial Status"] == "Refund" else 1


def _month(event: Event) -> datetime:
    return event.event_time.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _is_sale_or_refund(event: Event) -> bool:
    return (event.event_name == "refund" and event.price_micros is not None) or _is_sale(event)


def _is_sale(event: Event) -> bool:
    if event.event_name in {"subscription_started", "subscription_renewed"}:
        return bool(event.price_micros)
    return event.event_name == "purchase" and (event.price_micros is not None or event.amount is not None)


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
    each.__name__: each
    for each in (revenue_per_day, revenue_by_country, refunds, store_differences, orders_that_differ)
}
_COUNTED = _counted()
_LINES = tuple(_lines())
