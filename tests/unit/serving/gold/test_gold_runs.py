"""Which gold tables are due, and that one which fails holds up no other."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from shutil import rmtree

import msgspec
import pytest

from gamelake.contract.games import GamesContract, GameSpec
from gamelake.ledger.holds import Hold, hold_back, release
from gamelake.model.errors import StoreUnavailableError
from gamelake.objects.store import Location, Store
from gamelake.serving.gold.refresh import GoldRefresh, Refreshed, RefreshOutcome
from gamelake.serving.gold.runner import FailedRefresh, GoldRunner, GoldTables, RefreshSchedule, attempt, summary
from tests.support.failing import failing
from tests.unit.serving.gold.histories import DAILY, PLAYERS, SILVER, append

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
    hold_back(store, Hold(table=SILVER, by="ann", since=datetime.now(UTC), day=date(2026, 1, 8), why="ids stand twice"))
    held = [attempt(each) for each in GoldTables(store, CONTRACT).now()]
    release(store, SILVER)
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
    GoldRunner(tables, one_by_one, [steps]).once()

    assert steps.reported == [*(step for each in tables.now() for step in (each.table, "well")), "run finished"]


class Tasks:
    """Refreshes as tasks would, and notes of which tables."""

    def __init__(self) -> None:
        self.started: list[str] = []

    def __call__(self, due: Sequence[GoldRefresh]) -> Iterator[Refreshed | FailedRefresh]:
        for refresh in due:
            self.started.append(refresh.table)
            yield attempt(refresh)


@pytest.fixture
def tasks() -> Tasks:
    return Tasks()


@pytest.fixture
def runner(store: Store, tasks: Tasks) -> GoldRunner:
    """One whose first run has made both tables."""
    runner = GoldRunner(GoldTables(store, CONTRACT), tasks)
    runner.once()
    tasks.started.clear()
    return runner


def outcomes(results: Sequence[Refreshed | FailedRefresh]) -> list[str]:
    return [str(each.outcome) for each in results if isinstance(each, Refreshed)]


def test_no_task_is_started_for_a_table_whose_silver_table_has_not_changed(runner: GoldRunner, tasks: Tasks) -> None:
    assert outcomes(runner.once()) == outcomes(runner.once()) == ["unchanged", "unchanged"]
    assert tasks.started == []


def test_a_table_is_refreshed_when_silver_has_a_new_version(runner: GoldRunner, tasks: Tasks, store: Store) -> None:
    append(store.location, [("bob", 1, None)])

    assert outcomes(runner.once()) == ["merged", "partitions"]
    assert outcomes(runner.once()) == ["unchanged", "unchanged"]
    assert tasks.started == ["gold/archery_duel_player_agg", "gold/archery_duel_daily"]


def test_a_table_that_was_removed_is_made_again(runner: GoldRunner, tasks: Tasks, store: Store, tmp_path: Path) -> None:
    rmtree(tmp_path / "gold/archery_duel_daily")

    assert outcomes(runner.once()) == ["unchanged", "rebuilt"]
    assert tasks.started == ["gold/archery_duel_daily"]


def test_a_table_follows_a_silver_table_that_was_dropped_and_made_again(
    runner: GoldRunner, store: Store, tmp_path: Path
) -> None:
    rmtree(tmp_path / "silver/archery_duel_events")
    append(store.location, [("eve", 7, None)])

    assert outcomes(runner.once()) == ["rebuilt", "rebuilt"]


def test_a_table_that_is_held_back_is_not_said_to_be_unchanged(runner: GoldRunner, store: Store) -> None:
    hold = Hold(table=SILVER, by="ann", since=datetime.now(UTC), day=date(2026, 1, 8), why="ids stand twice")
    hold_back(store, hold)

    assert outcomes(runner.once()) == ["held", "held"]


def test_a_store_that_does_not_respond_is_the_failure_of_each_refresh(
    runner: GoldRunner, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GoldRefresh, "is_up_to_date", failing(StoreUnavailableError("it does not respond")))

    assert outcomes(runner.once()) == ["unchanged", "unchanged"]
    assert len(tasks.started) == 2
