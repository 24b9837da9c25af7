"""Revenue counts an order once for ever, whatever is sent of it, how often and in which order."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from tests.answers.play import Event
from tests.unit.properties import examples
from tests.unit.serving.money.money_lake import MoneyLake, merged

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SALE = Event(
    event_time=NOON, event_name="purchase", game_name="Kart Rumble", gamer_id="ada", session_id=None, platform="ios",
    app_version="1", country="DE", currency="EUR", price_micros=2_000_000, order_id="one", store="app_store",
)  # fmt: skip
REFUND = replace(SALE, event_name="refund")
EVENTS = st.builds(
    lambda event, hours, price, order, name: replace(
        event, event_name=name, event_time=NOON + timedelta(hours=hours), price_micros=price * 1_000_000, order_id=order
    ),
    st.just(SALE),
    st.integers(0, 80),
    st.integers(1, 4),
    st.sampled_from(["one", "two"]),
    st.sampled_from(["purchase", "refund", "subscription_started", "subscription_renewed"]),
)


def later(event: Event, days: int, euros: int = 2) -> Event:
    return replace(event, event_time=event.event_time + timedelta(days=days), price_micros=euros * 1_000_000)


def sums(lake: MoneyLake) -> list[tuple[object, ...]]:
    """The day, and sales and refunds with their amounts, of each day with one of them."""
    sql = """SELECT event_date, sales, gross_sales, refunds, refunded FROM gold.money_per_day
        WHERE sales > 0 OR refunds > 0 ORDER BY event_date"""
    return [tuple(row.values()) for row in lake.ask(sql)]


def test_an_order_that_is_sent_again_hours_and_months_later_counts_on_the_first_day(tmp_path: Path) -> None:
    again = replace(SALE, event_time=NOON + timedelta(minutes=11))

    assert sums(MoneyLake(tmp_path, [[SALE], [again], [later(SALE, 90)]])) == [(date(2026, 6, 1), 1, 2.0, 0, 0.0)]


def test_the_price_of_the_latest_event_counts_on_the_day_of_the_first_one(tmp_path: Path) -> None:
    lake = MoneyLake(tmp_path, [[later(SALE, 3, euros=5)], [SALE]])

    assert sums(lake) == [(date(2026, 6, 1), 1, 5.0, 0, 0.0)]
    assert [row["price"] for row in lake.ask("SELECT CAST(price AS double) AS price FROM gold.orders")] == [5.0]


def test_a_refund_counts_on_its_own_day_once_and_stays_though_the_sale_is_sent_again(tmp_path: Path) -> None:
    events = [SALE, later(REFUND, 1), later(REFUND, 2, euros=1), later(SALE, 3)]

    lake = MoneyLake(tmp_path, [events])

    assert sums(lake) == [(date(2026, 6, 1), 1, 2.0, 0, 0.0), (date(2026, 6, 2), 0, 0.0, 1, 1.0)]
    assert [row["state"] for row in lake.ask("SELECT state FROM gold.orders")] == ["partly_refunded"]


def test_a_subscription_that_comes_as_a_purchase_too_is_one_sale(tmp_path: Path) -> None:
    started = replace(SALE, event_name="subscription_started", event_time=NOON + timedelta(seconds=2))

    assert sums(MoneyLake(tmp_path, [[SALE, started]])) == [(date(2026, 6, 1), 1, 2.0, 0, 0.0)]


def test_sales_without_an_order_id_and_the_same_id_of_two_stores_are_sales_of_their_own(tmp_path: Path) -> None:
    unnamed = replace(SALE, order_id=None)
    of_google = replace(SALE, store="google_play")

    assert sums(MoneyLake(tmp_path, [[unnamed, unnamed], [SALE, of_google]])) == [(date(2026, 6, 1), 4, 8.0, 0, 0.0)]


def test_a_free_trial_is_no_sale(tmp_path: Path) -> None:
    trial = replace(SALE, event_name="subscription_started", price_micros=0)

    assert sums(MoneyLake(tmp_path, [[trial]])) == []


def by_hand(events: Sequence[Event]) -> list[tuple[object, ...]]:
    days: dict[date, list[float]] = {}
    for order in {event.order_id for event in events}:
        for place, is_refund in ((0, False), (2, True)):
            found = [each for each in events if each.order_id == order and (each.event_name == "refund") is is_refund]
            if found:
                sums_of_day = days.setdefault(min(each.event_time for each in found).date(), [0, 0.0, 0, 0.0])
                latest = max(found, key=lambda each: (each.event_time, each.price_micros or 0))
                sums_of_day[place] += 1
                sums_of_day[place + 1] += (latest.price_micros or 0) / 1_000_000
    return [(day, *sums_of_day) for day, sums_of_day in sorted(days.items())]


@examples(8)
@given(events=st.lists(EVENTS, min_size=1, max_size=9), cut=st.integers(0, 9), data=st.data())
def test_any_history_of_orders_in_any_order_of_arrival_gives_the_same_revenue(
    events: Sequence[Event], cut: int, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(events))
    parts = [shuffled[:cut], shuffled[cut:]]

    assert merged("all_orders", parts).equals(merged("all_orders", [events]))
    with TemporaryDirectory() as folder:
        assert sums(MoneyLake(Path(folder), parts)) == by_hand(events)
