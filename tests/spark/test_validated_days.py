"""Days validated by Great Expectations on Spark: a clean one passes, and each kind of damage is found."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from gamelake.ledger.coordinates import CoordinateRange
from gamelake.ledger.holds import holds
from gamelake.model.naming import BRONZE_EVENTS, BRONZE_FILES, DEAD_LETTERS, SILVER_EVENTS, VALIDATIONS, game_table
from gamelake.objects.store import Location, Store
from gamelake.quality.check_findings import Bounds, CheckStatus
from gamelake.quality.checking import check_rules
from gamelake.quality.rules import load_rules
from gamelake.quality.suites.counting import figures
from gamelake.quality.suites.day import LakehouseDay, games_to_validate, newest_day
from gamelake.quality.suites.expectations import Expectation, SuiteName, ValidationSuite, Weight
from gamelake.quality.suites.holds import GoldHolds
from gamelake.quality.suites.hops import Hop, LakehouseTotals, TableHops, hops_of_totals, validate_hops
from gamelake.quality.suites.hour_hops import HourHops
from gamelake.quality.suites.lost_records import BatchCoordinates
from gamelake.quality.suites.results import build_docs, write_results
from gamelake.quality.suites.summary import summary_table
from gamelake.quality.suites.validations import ExpectationResult, ValidationRun
from tests.spark.planted import DAY, IN_BOTH_TABLES, OTHER_DAMAGE, SCHEMA, Events, events, week

pytestmark = pytest.mark.spark

CLEAN = "clean"
LOST, ADDED = "lost_between_tables", "added_between_tables"
NOW = datetime(2026, 1, 9, 6, tzinfo=UTC)
Found = Mapping[str, Sequence[ExpectationResult]]


def _damaged_days() -> Mapping[str, Events]:
    """The day of each game whose events are damaged, each in its own way."""
    days = {game: change(events(game, DAY)) for game, change in IN_BOTH_TABLES.items()}
    return days | {game: change(events(game, DAY)) for game, (_, change) in OTHER_DAMAGE.items()}


def _good_days() -> Mapping[str, Events]:
    """The day of a clean game, and of two whose tables will have lost and added an event."""
    return {game: events(game, DAY) for game in (CLEAN, LOST, ADDED)}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A lakehouse of many games."""
    store = Store(Location(uri=tmp_path_factory.mktemp("lakehouse").as_uri()))
    _write_games(store, {**_damaged_days(), **_good_days()})
    return store


def _write_games(store: Store, days: Mapping[str, Events]) -> None:
    """Each game's own table, and the one that they share, which lacks an event of LOST and has one of ADDED twice."""
    shared: Events = []
    for game, day in days.items():
        _write(store, game_table(game), week(game) + day)
        shared += {LOST: day[1:], ADDED: [*day, day[0]]}.get(game, day)
    _write(store, SILVER_EVENTS, shared)


def _write(store: Store, table: str, rows: Events) -> None:
    write_deltalake(store.location.child(table), pa.Table.from_pylist(rows, schema=SCHEMA), partition_by=["event_date"])


@pytest.fixture(scope="module")
def validations(spark: SparkSession) -> ValidationRun:
    return ValidationRun(DAY)


@pytest.fixture(scope="module")
def found(spark: SparkSession, store: Store, validations: ValidationRun) -> Found:
    """What the suites of all games came to."""
    rules = check_rules(load_rules(Path("quality/rules")), SCHEMA, ())
    return dict(LakehouseDay(store, DAY, rules).validate(spark, games_to_validate(store, ()), validations))


def _failed(outcomes: Sequence[ExpectationResult]) -> set[str]:
    return {each.expected.name for each in outcomes if each.status is CheckStatus.FAILED}


def test_a_clean_day_has_no_failure(found: Found) -> None:
    assert _failed(found[CLEAN]) == set()
    assert {each.expected.name for each in found[CLEAN] if each.status is CheckStatus.SKIPPED} == {"gold_counts_silver"}


@pytest.mark.parametrize("damage", IN_BOTH_TABLES)
def test_each_kind_of_damage_is_found(found: Found, damage: str) -> None:
    assert damage in _failed(found[damage])


@pytest.mark.parametrize("game", OTHER_DAMAGE)
def test_other_kinds_of_damage_are_found(found: Found, game: str) -> None:
    assert OTHER_DAMAGE[game][0] in _failed(found[game])


@pytest.mark.parametrize(("game", "named"), [(LOST, "missing there: 0:"), (ADDED, "missing here: 0:")])
def test_a_row_that_only_one_of_two_tables_has_is_named(found: Found, game: str, named: str) -> None:
    (outcome,) = [each for each in found[game] if each.status is CheckStatus.FAILED]

    assert outcome.expected.name == "rows_are_in_silver_events"
    assert outcome.detail.startswith(named)


def test_rows_that_break_a_rule_are_named_by_their_coordinates(found: Found) -> None:
    (outcome,) = [each for each in found["country_is_iso"] if each.status is CheckStatus.FAILED]

    assert outcome.observed == 1
    assert outcome.detail == f"such as 0:{DAY.toordinal() * 1000} (partition:offset)"


def test_results_are_kept_and_shown(store: Store, found: Found, validations: ValidationRun, tmp_path: Path) -> None:
    outcomes = [outcome for of_game in found.values() for outcome in of_game]
    for at in (NOW, NOW + timedelta(hours=1)):
        write_results(store, DAY, at, outcomes)
    page = build_docs(validations, tmp_path)

    rows = DeltaTable(store.location.child(VALIDATIONS)).to_pyarrow_table().to_pylist()
    assert len(rows) == 2 * len(outcomes)
    assert {row["status"] for row in rows if row["expectation"] == "volume" and row["game"] == "volume"} == {"failed"}
    assert CLEAN in page.read_text()
    assert list(tmp_path.glob("validations/clean rules/**/*.html"))


def test_a_critical_failure_holds_gold_back_until_a_validation_passes(store: Store, found: Found) -> None:
    def settle(day: date, game: str) -> None:
        GoldHolds(store=store, day=day, now=NOW, by="a test").settle("chess", found[game])

    for game in ("country_is_iso", "volume"):
        settle(DAY, game)
        assert holds(store, NOW) == {}, "a warning holds nothing back"
    settle(DAY, "event_ids_are_unique")
    (hold,) = holds(store, NOW)["silver/chess_events"]
    assert hold.why == "event_ids_are_unique failed for 2026-01-08"
    for day in (DAY - timedelta(days=1), DAY + timedelta(days=1)):
        settle(day, CLEAN)
        assert holds(store, NOW), "another day says nothing of it"
    settle(DAY, CLEAN)
    assert holds(store, NOW) == {}


def test_a_game_whose_table_can_not_be_read_fails_alone(spark: SparkSession, tmp_path: Path) -> None:
    lake = Store(Location(uri=tmp_path.as_uri()))
    _write_games(lake, {"chess": events("chess", DAY), "gone": events("gone", DAY)})
    for file in (tmp_path / game_table("gone")).glob(f"event_date={DAY}/*.parquet"):
        file.unlink()
    rules = check_rules(load_rules(Path("quality/rules")), SCHEMA, ())

    outcomes = dict(LakehouseDay(lake, DAY, rules).validate(spark, ["gone", "chess"], ValidationRun(DAY)))

    assert _failed(outcomes["chess"]) == set()
    (failed,) = [each for each in outcomes["gone"] if each.status is CheckStatus.FAILED]
    assert failed.expected.name == "checks_ran"
    assert failed.is_failure
    assert not failed.holds_gold


def test_the_newest_day_is_the_last_that_has_events_and_not_after_today(store: Store) -> None:
    assert newest_day(store, DAY + timedelta(days=3)) == DAY
    assert newest_day(store, DAY - timedelta(days=3)) == DAY - timedelta(days=3)


def _hops(spark: SparkSession, store: Store, hops: Sequence[Hop]) -> Mapping[str, ExpectationResult]:
    return {each.expected.name: each for each in validate_hops(ValidationRun(DAY), spark, hops)}


def test_sums_that_differ_fail_their_hop_alone(spark: SparkSession, store: Store) -> None:
    accounts = LakehouseTotals(
        records=100, settled=100, bronze_rows=99, games_rows=90, shared_rows=90, problems=("events[0]: offset 7",)
    )

    outcomes = _hops(spark, store, list(hops_of_totals(accounts)))

    assert _failed(list(outcomes.values())) == {"records_reconcile", "records_are_in_bronze"}
    assert outcomes["records_reconcile"].detail == "events[0]: offset 7"


def test_a_record_that_is_lost_behind_bronze_is_named_by_its_coordinates(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(Location(uri=tmp_path.as_uri()))
    bronze = [{"topic": "events", "partition": 0, "offset": offset, "ingest_date": DAY} for offset in range(10)]
    bronze += [{"topic": "files", "partition": -1, "offset": 2**28 + offset, "ingest_date": DAY} for offset in range(5)]
    silver = [{"kafka_partition": row["partition"], "kafka_offset": row["offset"]} for row in bronze]
    for table, rows in (
        (BRONZE_EVENTS, bronze),
        (SILVER_EVENTS, silver[:3] + silver[5:]),
        (DEAD_LETTERS, bronze[3:4]),
        (BRONZE_FILES, [{"records": 6, "ingest_date": DAY}]),
    ):
        write_deltalake(store.location.child(table), pa.Table.from_pylist(rows))
    batches = [BatchCoordinates((CoordinateRange("events", 0, 0, 9),), in_bronze_alone=0)]

    outcomes = _hops(spark, store, list(TableHops(store, spark, DAY).hops(batches)))

    lost, files = outcomes["bronze_records_came_to_something"], outcomes["files_are_their_records"]
    assert (lost.status, lost.observed) == (CheckStatus.FAILED, 1)
    assert lost.detail == "among them 0:4 (partition:offset)"
    assert (files.status, files.detail) == (CheckStatus.FAILED, "6 and 5")
    reported = [BatchCoordinates((CoordinateRange("events", 0, 0, 9),), in_bronze_alone=1)]
    assert (
        _hops(spark, store, list(TableHops(store, spark, DAY).hops(reported)))[lost.expected.name].status
        is CheckStatus.PASSED
    )


def test_an_hour_of_a_game_that_its_two_tables_count_differently_is_named(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(Location(uri=tmp_path.as_uri()))
    _write_games(store, _good_days())
    (hop,) = HourHops(store, spark, DAY, sleep=lambda _: None).hops()

    first = events(ADDED, DAY)[0]
    coordinates = f"{first['kafka_partition']}:{first['kafka_offset']}"
    hours = [text.split(" ")[0] for text in hop.detail.split(", such as ")[0].split("; ")]
    assert hop.apart == 2
    assert hours == [ADDED, LOST]
    assert hop.detail.endswith(f", such as {coordinates} (partition:offset)")


def test_hours_that_agree_once_a_batch_has_ended_are_no_difference(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(Location(uri=tmp_path.as_uri()))
    day = events(CLEAN, DAY)
    _write(store, game_table(CLEAN), day)
    _write(store, SILVER_EVENTS, day[1:])
    paused = []

    def end_the_batch(seconds: float) -> None:
        paused.append(seconds)
        if len(paused) == 1:
            rest = pa.Table.from_pylist(day[:1], schema=SCHEMA)
            write_deltalake(store.location.child(SILVER_EVENTS), rest, mode="append")

    (hop,) = HourHops(store, spark, DAY, sleep=end_the_batch).hops()

    assert (hop.apart, hop.detail, len(paused)) == (0, "", 1)


def test_lost_records_are_found_however_many_duplicates_a_day_has(spark: SparkSession, tmp_path: Path) -> None:
    store, size, batches = Store(Location(uri=tmp_path.as_uri())), 10_000, 20
    offsets = pa.array(range(batches * size))
    bronze = {"topic": pa.repeat("events", len(offsets)), "partition": pa.repeat(0, len(offsets)), "offset": offsets}
    rows = pa.table({**bronze, "ingest_date": pa.repeat(pa.scalar(DAY), len(offsets))})
    write_deltalake(store.location.child(BRONZE_EVENTS), rows)
    reported = [
        BatchCoordinates((CoordinateRange("events", 0, first, first + size - 1),), in_bronze_alone=size - 100)
        for first in range(0, batches * size, size)
    ]

    (lost,) = (each for each in TableHops(store, spark, DAY).hops(reported))

    assert lost.apart == batches * 100
    assert lost.detail == "among them 0:0, 0:10000, 0:20000 (partition:offset)"


def test_what_was_not_computed_has_failed_with_its_reason(spark: SparkSession) -> None:
    expected = tuple(
        Expectation(name=name, bounds=Bounds(0, 0), weight=Weight.CRITICAL, expect=name) for name in ("there", "lost")
    )
    suite = ValidationSuite(name=SuiteName.TABLES, game="chess", table=game_table("chess"), expected=expected)

    outcomes = {each.expected.name: each for each in ValidationRun(DAY).validate(suite, figures(spark, {"there": 0.0}))}

    assert outcomes["there"].status is CheckStatus.PASSED
    assert (outcomes["lost"].status, outcomes["lost"].holds_gold) == (CheckStatus.FAILED, True)
    assert "lost" in outcomes["lost"].detail
    assert "chess tables: lost (critical): it was not computed [" in summary_table([*outcomes.values()])
