"""Gold compared with the silver that it was made of, and held back while a day of silver has failed."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from gamelake.contract.aggregates import AggregateSpec
from gamelake.delta.tables import open_table
from gamelake.ledger.holds import holds
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.model.naming import game_table
from gamelake.objects.store import Store
from gamelake.privacy.row_eraser import RowEraser
from gamelake.quality.check_findings import Bounds, CheckStatus
from gamelake.quality.gold_check import GOLD_CHECK, GoldCheck
from gamelake.quality.suites.expectations import Expectation, SuiteName, ValidationSuite, Weight
from gamelake.quality.suites.holds import GoldHolds
from gamelake.quality.suites.validations import ExpectationResult
from gamelake.scans.player_rows import PlayerFilter, player_tables
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.definition import define
from gamelake.serving.gold.refresh import GoldRefresh, Refreshed
from gamelake.serving.gold.runner import GoldTables, attempt

DAY, LATER = date(2026, 1, 1), date(2026, 1, 8)
NOW = datetime(2026, 1, 9, 6, tzinfo=UTC)
CONTRACT = load_gold(Path("contracts/games.yaml"))
SILVER, PLAYERS = game_table("chess"), "gold/chess_player_agg"


def append(store: Store, count: int = 20, name: str = "level_completed") -> None:
    rows = [
        {
            "event_id": f"{name}-{number}",
            "event_name": name,
            "event_time": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number),
            "game_name": "Chess",
            "platform": "ios",
            "app_version": "1.2",
            "session_id": f"s-{number % 9}",
            "event_date": DAY,
            "gamer_id": f"p-{number % 7}",
            "amount": 1.0,
        }
        for number in range(count)
    ]
    write_deltalake(
        store.location.child(SILVER), pa.Table.from_pylist(rows), partition_by=["event_date"], mode="append"
    )


def refreshed(store: Store) -> Mapping[str, str]:
    results = map(attempt, GoldTables(store, CONTRACT).now())
    return {each.table: each.outcome.value for each in results if isinstance(each, Refreshed) if "chess" in each.table}


def check(store: Store) -> tuple[CheckStatus, float | None, float | None]:
    finding = GoldCheck(store, "chess").finding()
    return finding.status, finding.observed, finding.expected


def test_gold_is_compared_with_the_version_of_silver_that_it_was_made_of(store: Store) -> None:
    append(store)
    refreshed(store)
    append(store, 5)

    assert check(store) == (CheckStatus.PASSED, 20, 20)


def test_the_platforms_own_events_are_not_expected_in_gold(store: Store) -> None:
    append(store)
    append(store, 3, "smoke_test")
    refreshed(store)

    assert check(store) == (CheckStatus.PASSED, 20, 20)


def test_gold_that_counts_otherwise_than_silver_is_found(store: Store) -> None:
    append(store)
    (spec,) = [each for each in CONTRACT.aggregates if each.name == "player_agg"]
    doubled = AggregateSpec(
        name=spec.name, group_by=spec.group_by, refresh=spec.refresh, columns={"event_count": "sum(2)"}
    )
    GoldRefresh(store.location, SILVER, PLAYERS, define(doubled))()

    assert check(store) == (CheckStatus.FAILED, 40, 20)


def test_a_game_without_events_is_compared_after_compaction_and_vacuum(store: Store) -> None:
    for _ in range(5):
        append(store)
    refreshed(store)
    rule = CompactionRule(target_bytes=10**8, hot_files=1, today=LATER)
    assert TableCompaction(store.location, SILVER, rule)().files_after == 1

    assert refreshed(store)[PLAYERS] == "unchanged"
    TableVacuum(store, SILVER, datetime.now(UTC) + timedelta(seconds=2), {}).run()

    assert check(store) == (CheckStatus.PASSED, 100, 100)


def test_gold_that_stands_at_a_version_without_files_is_not_compared_by_reading_them(store: Store) -> None:
    append(store)
    append(store, 3, "smoke_test")
    refreshed(store)
    rule = CompactionRule(target_bytes=10**8, hot_files=1, today=LATER)
    TableCompaction(store.location, SILVER, rule)()
    TableVacuum(store, SILVER, datetime.now(UTC) + timedelta(seconds=2), {}).run()

    finding = GoldCheck(store, "chess").finding()

    assert finding.status is CheckStatus.SKIPPED
    assert "version 1, the source of gold, no longer exists" in finding.detail


def test_a_compaction_is_noted_once_and_no_row_is_written(store: Store) -> None:
    append(store)
    append(store)
    refreshed(store)
    before = open_table(store.location, PLAYERS)
    TableCompaction(store.location, SILVER, CompactionRule(target_bytes=10**8, hot_files=1, today=LATER))()

    assert [refreshed(store)[PLAYERS] for _ in range(3)] == ["unchanged"] * 3

    after = open_table(store.location, PLAYERS)
    assert after.version() == before.version() + 1
    assert after.file_uris() == before.file_uris()


def outcome(name: str, status: CheckStatus, suite: SuiteName = SuiteName.RULES) -> ExpectationResult:
    expected = Expectation(name=name, bounds=Bounds(0, 0), weight=Weight.CRITICAL, expect=name)
    validated = ValidationSuite(name=suite, game="chess", table=SILVER, expected=(expected,))
    return ExpectationResult(suite=validated, expected=expected, status=status)


def settle(store: Store, day: date, *outcomes: ExpectationResult) -> list[date]:
    """Settle the validation of a day. Return the days that are held."""
    GoldHolds(store=store, day=day, now=NOW, by="a test").settle("chess", outcomes)
    return [hold.day for hold in holds(store, NOW).get(SILVER, ())]


def test_an_older_days_validation_releases_no_newer_days_hold(store: Store) -> None:
    assert settle(store, LATER, outcome("ids", CheckStatus.FAILED)) == [LATER]
    assert settle(store, DAY, outcome("ids", CheckStatus.FAILED)) == [DAY, LATER]
    assert settle(store, DAY, outcome("ids", CheckStatus.PASSED)) == [LATER]
    assert settle(store, LATER, outcome("ids", CheckStatus.PASSED)) == []


def test_a_hold_is_released_by_its_own_check_alone(store: Store) -> None:
    settle(store, DAY, outcome("ids", CheckStatus.FAILED, SuiteName.TABLES))

    assert settle(store, DAY, outcome("ids", CheckStatus.SKIPPED), outcome("amounts", CheckStatus.PASSED)) == [DAY]
    assert settle(store, DAY, outcome("ids", CheckStatus.PASSED, SuiteName.TABLES)) == []


def test_the_hold_of_a_rule_that_was_removed_ends_with_the_next_run_of_the_rules(store: Store) -> None:
    settle(store, DAY, outcome("no_longer", CheckStatus.FAILED))

    assert settle(store, DAY, outcome("volume", CheckStatus.PASSED, SuiteName.TABLES)) == [DAY]
    assert settle(store, DAY, outcome("amounts", CheckStatus.PASSED)) == []


def test_a_wrong_count_in_gold_holds_nothing_back(store: Store) -> None:
    assert settle(store, DAY, outcome(GOLD_CHECK, CheckStatus.FAILED, SuiteName.TABLES)) == []


def test_a_hold_and_an_erasure_end_when_the_day_passes_and_gold_is_right_again(store: Store) -> None:
    append(store, 70)
    refreshed(store)
    settle(store, DAY, outcome("ids", CheckStatus.FAILED))
    for table in player_tables(store):
        RowEraser(store, table, PlayerFilter(frozenset(["p-3"])), "run-1").erase()

    assert set(refreshed(store).values()) == {"held"}
    assert check(store) == (CheckStatus.SKIPPED, None, None)
    assert settle(store, DAY, outcome("ids", CheckStatus.PASSED)) == []
    assert refreshed(store)[PLAYERS] == "merged"
    assert check(store) == (CheckStatus.PASSED, 60, 60)


def test_gold_that_was_refreshed_between_the_erasure_of_silver_and_its_own_is_compared_again(store: Store) -> None:
    append(store, 70)
    refreshed(store)
    for table in sorted(player_tables(store), key=lambda each: each.name.startswith("gold/")):
        RowEraser(store, table, PlayerFilter(frozenset(["p-3"])), "run-1").erase()
        refreshed(store)

    assert check(store) == (CheckStatus.PASSED, 60, 60)
    versions = open_table(store.location, PLAYERS).version()
    refreshed(store)
    assert open_table(store.location, PLAYERS).version() == versions
