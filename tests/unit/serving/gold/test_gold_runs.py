"""Which gold tables are due, and that one which fails holds up no other."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from gamelake.model.games import GamesContract, GameSpec
from gamelake.serving.gold.refresh import GoldRefresh, Refreshed, RefreshOutcome
from gamelake.serving.gold.runner import FailedRefresh, GoldRunner, GoldTables, RefreshSchedule, attempt, summary
from gamelake.storage.holds import Hold, hold_back, release
from gamelake.storage.store import Location, Store
from tests.unit.serving.gold.histories import DAILY, PLAYERS, append

CONTRACT = GamesContract(games=(GameSpec(name="archery_duel", match=("Archery Duel",)),), aggregates=(PLAYERS, DAILY))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    lake = Location(uri=f"file://{tmp_path}")
    append(lake, [("ann", 0, None)])
    return Store(lake)


def test_each_game_that_has_events_has_each_aggregate(store: Store) -> None:
    tables = [each.table for each in GoldTables(store, CONTRACT).now()]

    assert tables == ["gold/archery_duel_player_agg", "gold/archery_duel_daily"]


def test_a_table_is_due_when_its_interval_is_over(store: Store) -> None:
    slow = msgspec.structs.replace(DAILY, every="5 minutes")
    tables = GoldTables(store, msgspec.structs.replace(CONTRACT, aggregates=(PLAYERS, slow))).now()
    schedule = RefreshSchedule()

    assert schedule.due(tables, now=100.0) == tables
    assert schedule.due(tables, now=130.0) == []
    assert schedule.pause(tables, 130.0, timedelta(minutes=2)) == 30.0
    assert schedule.due(tables, now=160.0) == tables[:1]
    assert schedule.due(tables, now=400.0) == tables


def test_a_table_that_fails_says_why_and_the_others_are_made(store: Store) -> None:
    wrong = msgspec.structs.replace(PLAYERS, name="wrong", columns={"levels": "max(no_such_column)"})
    contract = msgspec.structs.replace(CONTRACT, aggregates=(wrong, PLAYERS))

    failed, made = (attempt(each) for each in GoldTables(store, contract).now())

    assert isinstance(failed, FailedRefresh)
    assert "no_such_column" in failed.reason
    assert isinstance(made, Refreshed)
    assert summary([failed, made], 1.0) == {
        "tables": 2,
        "outcomes": {"failed": 1, "rebuilt": 1},
        "rows": 1,
        "seconds": 1.0,
    }


def test_the_tables_of_a_game_that_is_held_back_stay_as_they_are(store: Store) -> None:
    hold_back(
        store,
        Hold(game="archery_duel", by="ann", since=datetime.now(UTC), day=date(2026, 1, 8), why="ids stand twice"),
    )
    held = [attempt(each) for each in GoldTables(store, CONTRACT).now()]
    release(store, "archery_duel")
    made = [attempt(each) for each in GoldTables(store, CONTRACT).now()]

    assert [each.outcome for each in held if isinstance(each, Refreshed)] == [RefreshOutcome.HELD, RefreshOutcome.HELD]
    assert [each.outcome for each in made if isinstance(each, Refreshed)] == [
        RefreshOutcome.REBUILT,
        RefreshOutcome.REBUILT,
    ]


class Steps:
    """The notifications of an observer, in order."""

    def __init__(self) -> None:
        self.reported: list[str] = []

    def table_refreshed(self, refresh: GoldRefresh, _: Refreshed | FailedRefresh) -> None:
        self.reported.append(refresh.table)

    def run_finished(self, _: float) -> None:
        self.reported.append("run finished")

    def mark_alive(self) -> None:
        self.reported.append("well")


def test_a_run_over_many_tables_shows_progress_with_each_of_them(store: Store) -> None:
    steps = Steps()

    def one_by_one(due: Sequence[GoldRefresh]) -> Iterator[Refreshed | FailedRefresh]:
        for number, refresh in enumerate(due):
            assert steps.reported.count("well") == number
            yield attempt(refresh)

    tables = GoldTables(store, CONTRACT)
    GoldRunner(tables, one_by_one, steps).once()

    assert steps.reported == [*(step for each in tables.now() for step in (each.table, "well")), "run finished"]
