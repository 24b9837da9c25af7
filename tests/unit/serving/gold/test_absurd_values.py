"""Values of silver that no decimal number can hold, as earlier versions let in, stop no gold table."""

import logging
from decimal import Decimal
from pathlib import Path

import pytest

from gamelake.contract.aggregates import AggregateSpec, Refresh
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Location, Store
from gamelake.scans.sql_engine import engine
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.definition import define
from gamelake.serving.gold.refresh import GoldRefresh, Refreshed, RefreshOutcome
from gamelake.serving.gold.runner import GoldRunner, GoldTables, attempt
from tests.support.logged import logged
from tests.support.silver_events import BEGINNING, Event, Silver
from tests.unit.serving.gold.histories import PLAYERS, SILVER, append, gold, recomputed, refresh

ABSURD = [float("nan"), float("inf"), float("-inf"), 1e12, 1e13, -1e13, 1e308, -1e308]
BY_DAY = AggregateSpec(
    name="by_day",
    group_by=("event_date",),
    refresh=Refresh.PARTITION,
    columns={"bookings": "sum(amount::DECIMAL(18, 6))", "largest": "max(amount)", "middle": "median(amount)"},
)
# The events have neither orders nor subscriptions.
WITHOUT_AMOUNTS = {"gold/kpi_late", "gold/all_orders", "gold/all_subscription_periods"}


@pytest.fixture
def lake(tmp_path: Path) -> Location:
    return Location(uri=f"file://{tmp_path}")


def _bookings(lake: Location, spec: AggregateSpec = PLAYERS) -> dict[object, object]:
    column = len(spec.group_by) + list(spec.columns).index("bookings")
    return {row[0]: row[column] for row in gold(lake, spec)}


@pytest.mark.parametrize("amount", ABSURD)
def test_an_amount_that_no_decimal_number_can_hold_is_left_out_of_a_sum(amount: float, lake: Location) -> None:
    append(lake, [("ann", 0, 0.99), ("bob", 1, amount), ("bob", 2, 4.99), ("cid", 3, None)])

    assert [refresh(lake, spec) for spec in (PLAYERS, BY_DAY)] == [RefreshOutcome.REBUILT] * 2
    append(lake, [("ann", 20, amount), ("cid", 21, 0.0), ("ann", 22, 1.0)])
    assert [refresh(lake), refresh(lake, BY_DAY)] == [RefreshOutcome.MERGED, RefreshOutcome.PARTITIONS]

    assert _bookings(lake) == {"ann": Decimal("1.99"), "bob": Decimal("4.99"), "cid": Decimal(0)}
    assert list(_bookings(lake, BY_DAY).values()) == [Decimal("6.98")]
    assert gold(lake) == recomputed(lake)


def test_the_values_that_are_left_out_are_counted(lake: Location) -> None:
    def unfit(spec: AggregateSpec) -> int:
        done = GoldRefresh(lake, SILVER, spec.table("archery_duel"), define(spec))()
        return done.unfit

    append(lake, [("ann", 0, amount) for amount in [*ABSURD, None, 0.0, 999_999_999_999.0]])

    assert [unfit(PLAYERS), unfit(BY_DAY)] == [len(ABSURD)] * 2
    append(lake, [("bob", 1, 1e13), ("bob", 2, 1.0)])
    assert unfit(PLAYERS) == 1, "the new rows"
    append(lake, [("bob", 3, 1.0)])
    assert unfit(PLAYERS) == 0


def test_one_absurd_amount_leaves_the_gold_of_all_games_exact(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    silver = Silver(tmp_path)
    bought = [Event(at=BEGINNING, name="purchase", gamer=f"g{n}", session=f"s{n}", amount=0.1) for n in range(10)]
    silver.append([*bought, *(Event(at=BEGINNING, game="Bingo", name="purchase", amount=each) for each in ABSURD)])
    tables = GoldTables(Store(silver.location), load_gold(Path("contracts/games.yaml")))

    with caplog.at_level(logging.WARNING):
        results = GoldRunner(tables, lambda due: map(attempt, due)).once()

    assert {type(result) for result in results} == {Refreshed}
    with_amounts = [each for each in results if isinstance(each, Refreshed) and each.table not in WITHOUT_AMOUNTS]
    assert {result.unfit for result in with_amounts} == {len(ABSURD)}
    assert {"table": "gold/all_sessions", "source": SILVER_EVENTS, "values": 8} in logged(
        caplog, "gold_values_left_out"
    )
    with engine(1) as sql:
        sql.give("days", silver.table("gold/all_player_days"))
        found = sql.table("SELECT game_name, sum(bookings) AS bookings FROM days GROUP BY 1 ORDER BY 1").to_pylist()
    assert found == [{"game_name": "Archery", "bookings": Decimal(1)}, {"game_name": "Bingo", "bookings": None}]


def test_an_event_without_a_name_counts(tmp_path: Path) -> None:
    """An empty name is null where names partition the table of a game, and so in silver/events."""
    silver = Silver(tmp_path)
    silver.append([Event(at=BEGINNING, name=name) for name in ("level_completed", None, None, "smoke_test")])
    tables = GoldTables(Store(silver.location), load_gold(Path("contracts/games.yaml")))

    GoldRunner(tables, lambda due: map(attempt, due)).once()

    with engine(1) as sql:
        for table in ("gold/all_player_days", "gold/all_sessions"):
            sql.give("made", silver.table(table))
            assert sql.table("SELECT sum(event_count)::BIGINT AS events FROM made").to_pylist() == [{"events": 3}]


def test_a_sum_beyond_the_largest_integer_is_the_largest_integer() -> None:
    with engine(1) as sql:
        found = sql.table(f"""
            SELECT sum(n) AS high, -sum(n) AS low, sum(n) FILTER (WHERE false) AS nothing, count(*)::HUGEINT AS fits
            FROM (VALUES ({2**63 - 1}), (1)) AS numbers(n)""").to_pylist()  # noqa: S608 # a number

    assert found == [{"high": 2**63 - 1, "low": -(2**63), "nothing": None, "fits": 2}]
