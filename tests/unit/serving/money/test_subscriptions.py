"""Subscriptions: any history of a player's events, in any order of arrival, gives the same periods and states."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.answers.of_subscriptions import periods_of
from tests.answers.play import Event
from tests.unit.properties import examples
from tests.unit.serving.money.money_lake import MoneyLake, merged

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
WEEK = timedelta(days=7)
STARTED = Event(
    event_time=NOON, event_name="subscription_started", game_name="Kart Rumble", gamer_id="ada", session_id=None,
    platform="ios", app_version="1", country="DE", currency="EUR", price_micros=7_000_000, order_id="one",
    store="app_store", product_id="vip", paid_until=NOON + WEEK,
)  # fmt: skip
RENEWED = replace(
    STARTED, event_name="subscription_renewed", event_time=NOON + WEEK, order_id="two", paid_until=NOON + 2 * WEEK
)
NAMES = ("purchase", "refund", *(f"subscription_{name}" for name in ("started", "renewed", "cancelled", "in_grace")))
EVENTS = st.builds(
    lambda name, hours, week, price: replace(
        STARTED, event_name=name, event_time=NOON + timedelta(hours=hours), paid_until=NOON + week * WEEK,
        price_micros=price * 1_000_000,
    ),
    st.sampled_from(NAMES), st.integers(0, 600), st.integers(1, 3), st.integers(0, 2),
)  # fmt: skip


def ended(event: Event, name: str, days: float) -> Event:
    """Another event of the same period, some days after its sale."""
    return replace(event, event_name=name, event_time=event.event_time + timedelta(days=days), price_micros=0)


def state(folder: Path, *events: Event) -> list[tuple[object, ...]]:
    sql = "SELECT state, renewals, access_until FROM gold.subscriptions"
    rows = MoneyLake(folder, [events]).ask(sql)
    return [(row["state"], row["renewals"], str(row["access_until"])[:10]) for row in rows]


@pytest.fixture
def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def test_each_state_follows_from_the_newest_period(tmp_path: Path, now: datetime) -> None:
    def begun(days_ago: float, name: str | None = None, days: float = 0) -> list[Event]:
        begin = now - timedelta(days=days_ago)
        sold = replace(STARTED, gamer_id=name or "paid", event_time=begin, paid_until=begin + WEEK)
        return [sold, *([ended(sold, name, days)] if name else [])]

    events = [
        *begun(2),
        *begun(2, "subscription_cancelled", 1),
        *begun(10, "subscription_in_grace", 7),
        *begun(2, "refund", 1),
        *(replace(event, gamer_id="gone") for event in begun(30)),
        *(replace(event, gamer_id="grace over") for event in begun(30, "subscription_in_grace", 7)),
    ]

    rows = MoneyLake(tmp_path, [events]).ask("SELECT gamer_id, state FROM gold.subscriptions")

    assert {row["gamer_id"]: row["state"] for row in rows} == {
        "paid": "active", "subscription_cancelled": "cancelled_but_paid", "subscription_in_grace": "in_grace",
        "refund": "refunded", "gone": "expired", "grace over": "expired",
    }  # fmt: skip


def test_a_renewal_without_a_start_is_a_renewal_and_no_start(tmp_path: Path) -> None:
    assert state(tmp_path, RENEWED) == [("expired", 1, "2026-06-15")]


def test_a_renewal_that_comes_twice_counts_once(tmp_path: Path) -> None:
    again = replace(RENEWED, event_time=RENEWED.event_time + timedelta(days=1))

    assert state(tmp_path, STARTED, RENEWED, again) == [("expired", 1, "2026-06-15")]


def test_a_cancellation_after_a_refund_changes_nothing(tmp_path: Path) -> None:
    refund, cancelled = ended(STARTED, "refund", 1), ended(STARTED, "subscription_cancelled", 2)

    assert state(tmp_path, STARTED, refund, cancelled) == [("refunded", 0, "2026-06-02")]


def test_a_player_who_cancels_in_grace_loses_access_at_once(tmp_path: Path) -> None:
    grace, cancelled = ended(STARTED, "subscription_in_grace", 7), ended(STARTED, "subscription_cancelled", 9)

    assert state(tmp_path, STARTED, grace, cancelled) == [("expired", 0, "2026-06-10")]


def test_a_year_that_was_paid_in_euros_counts_in_dollars_by_month(tmp_path: Path) -> None:
    year = replace(STARTED, price_micros=120_000_000, paid_until=NOON + timedelta(days=365.25))

    rows = MoneyLake(tmp_path, [[year]]).ask("SELECT active, mrr FROM gold.subscriptions_per_day")

    assert [(row["active"], row["mrr"]) for row in rows] == [(1, pytest.approx(10 * 1.25))]


def test_a_currency_without_a_rate_is_counted_and_in_no_amount(tmp_path: Path) -> None:
    rows = MoneyLake(tmp_path, [[replace(STARTED, currency="CLP")]]).ask(
        "SELECT active, mrr, without_rate FROM gold.subscriptions_per_day"
    )

    assert [tuple(row.values()) for row in rows] == [(1, 0.0, 1)]


def test_a_day_without_events_on_which_one_currency_moves_has_the_others_too(tmp_path: Path) -> None:
    euros, dollars = STARTED, replace(STARTED, gamer_id="bob", currency="USD", paid_until=NOON + 2 * WEEK)
    later = replace(dollars, gamer_id="cid", event_time=NOON + timedelta(days=9), paid_until=NOON + 3 * WEEK)

    rows = MoneyLake(tmp_path, [[euros, dollars, later]]).ask(
        "SELECT event_date, active, expired FROM gold.subscriptions_per_day ORDER BY event_date"
    )

    counts = [(row["event_date"].day, row["active"], row["expired"]) for row in rows]
    assert counts == [(1, 2, 0), (8, 1, 1), (10, 2, 0)]


@examples(8)
@given(events=st.lists(EVENTS, min_size=1, max_size=9), cut=st.integers(0, 9), data=st.data())
def test_any_history_in_any_order_of_arrival_gives_the_same_periods(
    events: Sequence[Event], cut: int, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(events))
    parts = [shuffled[:cut], shuffled[cut:]]

    assert merged("all_subscription_periods", parts).equals(merged("all_subscription_periods", [events]))
    with TemporaryDirectory() as folder:
        rows = MoneyLake(Path(folder), parts).ask(
            """SELECT begins_at, paid_until, access_until, monthly_price FROM gold.subscription_periods
            ORDER BY begins_at, paid_until"""
        )
    expected = [
        (period.begins, period.paid_until, period.access_until, period.monthly if period.sale else None)
        for period in periods_of(events)
    ]
    moments = ("begins_at", "paid_until", "access_until")
    plain = [(*(row[name].replace(tzinfo=UTC) for name in moments), row["monthly_price"]) for row in rows]
    assert [(*row[:3], pytest.approx(row[3])) for row in expected] == plain
