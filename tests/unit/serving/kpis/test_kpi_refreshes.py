"""KPIs follow the changes of gold's tables: the computed days, the skipped ones, and the state after failures."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gamelake.delta.comments import uncommented
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.model.errors import StoreError
from gamelake.model.naming import SILVER_EVENTS
from gamelake.serving.kpis import cohorts, cohorts_by, first_values
from gamelake.serving.kpis import tables as kpi
from gamelake.serving.kpis.figures import GameChange, GameKpis
from gamelake.serving.kpis.refresh import KpiRefresh
from gamelake.serving.kpis.sets import DaySets
from gamelake.serving.kpis.sources import PLAYER_DAYS, SOURCES
from gamelake.serving.kpis.tables import MONEY
from tests.support.silver_events import BEGINNING, Event, Silver, some_events
from tests.unit.serving.kpis.kpi_lake import KpiLake

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@pytest.fixture
def lake(tmp_path: Path) -> KpiLake:
    return KpiLake(Silver(tmp_path))


def player(lake: KpiLake, game: str, gamer: str) -> int:
    rows = lake.silver.table("gold/kpi_players").to_pylist()
    (number,) = [row["number"] for row in rows if (row["game_name"], row["gamer_id"]) == (game, gamer)]
    return int(number)


def sets_of(lake: KpiLake, day: datetime, game: str = "Archery") -> DaySets:
    rows = lake.silver.table("gold/kpi_player_sets").to_pylist()
    (row,) = [row for row in rows if (row["event_date"], row["game_name"]) == (day.date(), game)]
    return DaySets.read(pa.Table.from_pylist([row]))


def of_day(lake: KpiLake, day: int, *columns: str) -> list[tuple[object, ...]]:
    """Return some columns of the cohorts' rows of one day, in order."""
    return [tuple(row) for number, *row in lake.figures("kpi_cohorts", "day", *columns) if number == day]


def test_events_in_any_order_give_what_silver_says(lake: KpiLake) -> None:
    events = some_events(600, seed=1, days=4, lateness=2 * DAY)

    lake.take(events[:200], events[200:250], events[250:])

    lake.check()


def a_day(day: int, hour: int) -> list[Event]:
    """Ten players who play at an hour of a day, one of whom buys something."""
    at = BEGINNING + day * DAY + hour * HOUR
    events = [Event(at=at + timedelta(minutes=n), gamer=f"g{n}", session=f"s{day}{n}") for n in range(10)]
    return [replace(events[0], name="purchase", amount=10.0), *events[1:]]


def test_a_rewrite_of_files_that_moves_a_day_to_the_end_takes_nothing_from_the_figures(lake: KpiLake) -> None:
    for day in range(3):
        lake.take(*(a_day(day, hour) for hour in (0, 9, 20)))
    late = Event(at=BEGINNING + 5 * HOUR, gamer="late", session="late", taken_in=BEGINNING + 2 * DAY + 20 * HOUR)
    lake.silver.append([late])
    today = (BEGINNING + 2 * DAY).date()
    rule = CompactionRule(target_bytes=10**8, hot_files=24, today=today)
    assert TableCompaction(lake.silver.location, SILVER_EVENTS, rule)().files_after < 10

    lake.run()
    counted_again = KpiLake(lake.silver)
    for table in ("gold/kpi_daily", "gold/kpi_player_sets"):
        assert (31, 30, 11) in lake.figures("kpi_daily", "events", "bookings", "active_players"), table
        write_deltalake(lake.silver.folder / table, lake.silver.table(table).slice(0, 0), mode="overwrite")
        assert counted_again.run().rebuilt

    counted_again.check()


def test_a_file_that_comes_many_hours_late_is_counted_and_said_to_be_late(lake: KpiLake) -> None:
    lake.take(a_day(0, 1), a_day(1, 1))

    lake.take([replace(event, gamer="from a file", taken_in=BEGINNING + 30 * HOUR) for event in a_day(0, 2)])

    assert lake.figures("kpi_daily", "events", "active_players") == [(10, 10), (20, 11)]
    assert sum(int(str(row[0])) for row in lake.figures("kpi_late", "late")) == 10
    lake.check()


def test_more_players_than_were_sampled_before_are_counted_one_by_one(lake: KpiLake) -> None:
    players, days = 150_000, 3
    rows = pa.table(
        {
            "event_date": pa.array([BEGINNING.date() + n * DAY for n in range(days) for _ in range(players)]),
            "game_name": pa.repeat(pa.scalar("Archery"), players * days),
            "gamer_id": pa.array([f"player {n + day * 50_000}" for day in range(days) for n in range(players)]),
            "event_count": pa.repeat(pa.scalar(1), players * days),
            "purchase_count": pa.array([int(n % 3 == 0) for _ in range(days) for n in range(players)]),
            "bookings": pa.array([Decimal(n % 3 == 0) for _ in range(days) for n in range(players)], MONEY),
        }
    )
    write_deltalake(lake.silver.folder / PLAYER_DAYS.path, rows)

    assert lake.refresh().failed == ()

    active = lake.figures("kpi_active_players", "dau", "wau", "mau")
    assert active == [(150_000, 150_000, 150_000), (150_000, 200_000, 200_000), (150_000, 250_000, 250_000)]
    figures = ("new_players", "returned_players", "payers", "cumulative_bookings")
    assert of_day(lake, 1, *figures) == [
        (150_000, 100_000, 83_334, 83_334),
        (50_000, 0, 16_666, 16_666),
        (50_000, 50_000, 33_333, 33_333),
    ]
    assert len(sets_of(lake, BEGINNING).payers) == 50_000


def test_a_player_who_comes_again_on_a_day_changes_no_set(lake: KpiLake) -> None:
    lake.take([Event(at=BEGINNING), Event(at=BEGINNING + HOUR, gamer="bob")])
    before = DeltaTable(lake.silver.folder / "gold/kpi_player_sets").file_uris()

    lake.take([Event(at=BEGINNING + 2 * HOUR)])

    assert DeltaTable(lake.silver.folder / "gold/kpi_player_sets").file_uris() == before
    lake.check()


def test_an_erasure_takes_a_player_out_of_the_sets_and_of_the_figures_of_the_past(lake: KpiLake) -> None:
    lake.take([Event(at=BEGINNING + n * DAY, gamer=gamer) for n in (0, 1, 20) for gamer in ("ann", "bob")])
    bob = player(lake, "Archery", "bob")
    assert bob in sets_of(lake, BEGINNING).ever

    lake.erase("bob")
    lake.run()

    assert lake.figures("kpi_players", "gamer_id") == [("ann",)]
    for day in (0, 1, 20):
        found = sets_of(lake, BEGINNING + day * DAY)
        assert not any(bob in each for each in (found.active, found.payers, found.new, found.ever))
    assert of_day(lake, 1, "new_players", "returned_retention") == [(1, 1.0)]
    lake.check()


def test_a_number_is_a_players_own_in_a_game_for_good(lake: KpiLake) -> None:
    lake.take([Event(at=BEGINNING, gamer="ann"), Event(at=BEGINNING, gamer="ann", game="Bingo")])
    first = player(lake, "Archery", "ann")

    lake.begin_again()
    lake.take([Event(at=BEGINNING - DAY, gamer="bob")], [Event(at=BEGINNING + DAY, gamer="ann")])

    assert player(lake, "Archery", "ann") == first
    assert sorted(lake.figures("kpi_players", "game_name", "number")) == [("Archery", 0), ("Archery", 1), ("Bingo", 0)]


def test_a_game_whose_figures_fail_keeps_its_rows_and_holds_up_no_other(lake: KpiLake) -> None:
    games = ("Archery", "Bingo")
    lake.take([Event(at=BEGINNING, game=game) for game in games])
    compute = GameKpis.compute

    def broken(figures: GameKpis, *arguments: object) -> GameChange:
        if figures.game == "Bingo":
            raise ValueError("broken")
        return compute(figures, *arguments)  # type: ignore[arg-type] # whatever it was called with

    lake.silver.append([Event(at=BEGINNING + n * DAY, game=game, gamer="bob") for game in games for n in (0, 1)])
    with patch.object(GameKpis, "compute", broken):
        failed = [lake.run().failed, lake.run().failed]

    assert failed == [("Bingo",), ("Bingo",)]
    counted = lake.figures("kpi_active_players", "game_name", "dau")
    assert counted == [("Archery", 1), ("Archery", 2), ("Bingo", 1)]
    lake.begin_again()
    assert lake.run().failed == ()
    lake.check()


def test_an_outage_is_no_games_failure(lake: KpiLake) -> None:
    lake.take([Event(at=BEGINNING)])
    lake.silver.append([Event(at=BEGINNING, gamer="bob")])
    lake.refresh_gold()

    with patch.object(GameKpis, "compute", side_effect=StoreError("the store is away")), pytest.raises(StoreError):
        lake.refresh()

    assert lake.refresh().failed == ()
    lake.check()


def test_a_cohort_has_a_row_once_its_day_begins_though_no_player_comes(lake: KpiLake) -> None:
    lake.today = (BEGINNING + 6 * DAY).date()
    lake.take([Event(at=BEGINNING), Event(at=BEGINNING, gamer="bob"), Event(at=BEGINNING + DAY)])
    assert of_day(lake, 1, "returned_players", "new_players") == [(1, 2)]
    assert of_day(lake, 7, "returned_players") == []

    lake.today += DAY
    lake.run()

    assert of_day(lake, 7, "returned_players", "returned_retention") == [(0, 0.0)]
    lake.check()


def test_a_game_whose_figures_fail_as_a_day_begins_gets_its_retention_later(lake: KpiLake) -> None:
    lake.today = BEGINNING.date()
    lake.take([Event(at=BEGINNING)])

    lake.today += DAY
    with patch.object(GameKpis, "compute", side_effect=ValueError("broken")):
        lake.run()
    lake.run()

    lake.check()


def test_the_first_purchase_of_a_player_moves_to_the_next_one_beyond_other_changed_days(lake: KpiLake) -> None:
    bought = [
        Event(at=BEGINNING + day * DAY, gamer=gamer, name="purchase", amount=float(day))
        for day, gamer in ((1, "ann"), (3, "bob"), (5, "ann"), (6, "ann"))
    ]
    lake.take([Event(at=BEGINNING, gamer="ann"), Event(at=BEGINNING, gamer="bob"), *bought])
    assert [len(sets_of(lake, BEGINNING + day * DAY).new_payers) for day in (1, 3, 5, 6)] == [1, 1, 0, 0]

    DeltaTable(lake.silver.folder / SILVER_EVENTS).delete("event_date = '2026-06-02'")
    lake.take([replace(bought[1], amount=4.0)])

    assert [len(sets_of(lake, BEGINNING + day * DAY).new_payers) for day in (3, 5, 6)] == [1, 1, 0]
    assert of_day(lake, 6, "bookings", "cumulative_bookings", "ltv", "payers") == [(6, 18, 9.0, 2)]
    lake.check()


def test_a_player_who_turns_out_to_be_older_takes_the_bookings_to_the_older_cohort(lake: KpiLake) -> None:
    bought = Event(at=BEGINNING + 2 * DAY, gamer="ann", name="purchase", amount=5.0)
    lake.take([Event(at=BEGINNING, gamer="bob"), Event(at=BEGINNING + DAY, gamer="ann"), bought])

    lake.take([Event(at=BEGINNING, gamer="ann", taken_in=BEGINNING + 3 * DAY)])

    assert of_day(lake, 2, "cohort_date", "new_players", "bookings") == [(BEGINNING.date(), 2, 5)]
    lake.check()


def test_a_cohort_ends_with_day_365(lake: KpiLake) -> None:
    lake.today = (BEGINNING + 400 * DAY).date()

    lake.take([Event(at=BEGINNING + day * DAY) for day in (0, 365, 366)])

    last = lake.figures("kpi_cohorts", "day", "returned_players")[-1]
    assert (len(lake.rows("kpi_cohorts")), last) == (366, (99, 0))
    assert of_day(lake, 365, "returned_players") == [(1,)]
    lake.check()


def test_a_change_of_the_newest_day_rewrites_no_file_of_older_ones(
    lake: KpiLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cohorts, "_ROWS_PER_FILE", 50)
    lake.today = (BEGINNING + 20 * DAY).date()
    lake.take([Event(at=BEGINNING + day * DAY, gamer=f"g{day}") for day in range(21)])
    before = set(DeltaTable(lake.silver.folder / "gold/kpi_cohorts").file_uris())

    lake.take([Event(at=BEGINNING + 20 * DAY, gamer="g0", name="purchase", amount=5.0)])

    after = set(DeltaTable(lake.silver.folder / "gold/kpi_cohorts").file_uris())
    assert (len(before - after), len(before & after)) == (1, len(before) - 1)
    assert len(before) > 3
    lake.check()


def of_dimension(lake: KpiLake, dimension: str, *columns: str) -> list[tuple[object, ...]]:
    """Return some columns of the split cohorts' rows of one dimension, in order."""
    return [tuple(row) for name, *row in lake.figures("kpi_cohorts_by", "dimension", *columns) if name == dimension]


def test_a_players_value_is_that_of_the_first_event_that_has_one_and_stays(lake: KpiLake) -> None:
    lake.take(
        [
            Event(at=BEGINNING, gamer="ann", country=None, source=""),
            Event(at=BEGINNING + HOUR, gamer="ann", country="DE"),
            Event(at=BEGINNING + 2 * HOUR, gamer="ann", country="FR"),
        ],
        [Event(at=BEGINNING + DAY, gamer="ann", country="JP", source="meta")],
    )

    assert set(of_dimension(lake, "country", "value", "new_players")) == {("DE", 1)}
    assert set(of_dimension(lake, "source", "value", "new_players")) == {("unknown", 1)}
    lake.check()


def test_a_late_earlier_event_gives_a_player_another_value(lake: KpiLake) -> None:
    lake.take(
        [Event(at=BEGINNING + HOUR, gamer="ann", country="DE")],
        [Event(at=BEGINNING, gamer="ann", country="FR", taken_in=BEGINNING + 5 * HOUR)],
    )

    assert set(of_dimension(lake, "country", "value", "new_players")) == {("FR", 1)}
    lake.check()


def test_a_first_day_keeps_its_largest_values_and_a_new_day_changes_no_older_one(lake: KpiLake) -> None:
    lake.today = (BEGINNING + DAY).date()
    names = [f"{number:02d}" for number in range(first_values.MOST_VALUES + 2)]
    first_day = [Event(at=BEGINNING, gamer=f"{name}-{n}", country=name) for name in names[:-2] for n in (0, 1)]
    lake.take([*first_day, *(Event(at=BEGINNING, gamer=name, country=name) for name in names[-2:])])
    lake.take([Event(at=BEGINNING + DAY, gamer=f"new {name}", country=name) for name in names[-2:]])

    found = of_dimension(lake, "country", "cohort_date", "day", "value", "new_players")
    first, second = BEGINNING.date(), (BEGINNING + DAY).date()
    assert [row[2:] for row in found if row[:2] == (first, 0)] == [*((name, 2) for name in names[:-2]), ("other", 2)]
    assert [row[2:] for row in found if row[0] == second] == [(name, 1) for name in names[-2:]]
    lake.check()


def test_a_rare_day_of_a_split_cohort_includes_the_purchases_since_the_day_before_it(lake: KpiLake) -> None:
    lake.today = (BEGINNING + 60 * DAY).date()
    paid = [Event(at=BEGINNING + day * DAY, name="purchase", amount=float(day)) for day in (2, 31, 45, 60)]
    lake.take([Event(at=BEGINNING), *paid[:3]])
    lake.take(paid[3:], [replace(paid[3], at=BEGINNING + 60 * DAY + HOUR)])

    found = of_dimension(lake, "platform", "day", "bookings", "cumulative_bookings")
    assert [row for row in found if row[0] in {30, 60}] == [(30, 0, 2), (60, 120, 198)]
    lake.check()


def test_a_change_of_the_newest_day_rewrites_one_file_of_split_cohorts(
    lake: KpiLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cohorts_by, "_ROWS_PER_FILE", 50)
    lake.today = (BEGINNING + 20 * DAY).date()
    lake.take([Event(at=BEGINNING + day * DAY, gamer=f"g{day}") for day in range(21)])
    before = set(DeltaTable(lake.silver.folder / "gold/kpi_cohorts_by").file_uris())

    lake.take([Event(at=BEGINNING + 20 * DAY, gamer="g0", name="purchase", amount=5.0)])

    after = set(DeltaTable(lake.silver.folder / "gold/kpi_cohorts_by").file_uris())
    of_today = 21 * 4 // 50 + 1
    assert 0 < len(before - after) <= of_today
    assert len(before) > 10
    lake.check()


def test_a_day_is_provisional_for_three_hours_after_its_end(lake: KpiLake) -> None:
    lake.take([Event(at=BEGINNING + 5 * HOUR)])

    for table in ("kpi_daily", "kpi_active_players"):
        assert lake.figures(table, "provisional_until") == [(BEGINNING + 27 * HOUR,)]
    assert of_day(lake, 1, "provisional_until") == [(BEGINNING + 51 * HOUR,)]
    assert lake.figures("kpi_hourly", "provisional_until") == [(BEGINNING + 9 * HOUR,)]


def test_files_of_players_stay_few(lake: KpiLake) -> None:
    for n in range(5):
        lake.take([Event(at=BEGINNING + n * HOUR, gamer=f"g{n}")])

    assert len(DeltaTable(lake.silver.folder / "gold/kpi_players").file_uris()) == 1
    assert len(lake.figures("kpi_players", "number")) == 5


def test_nothing_is_committed_if_nothing_has_changed(lake: KpiLake) -> None:
    lake.take([Event(at=BEGINNING)])
    versions = [DeltaTable(lake.silver.folder / table.path).version() for table in kpi.ALL]

    done = lake.refresh()

    assert (done.days, done.rebuilt) == (0, False)
    assert [DeltaTable(lake.silver.folder / table.path).version() for table in kpi.ALL] == versions


def test_without_gold_there_is_nothing_to_refresh(lake: KpiLake) -> None:
    done = lake.refresh()

    assert (done.days, done.positions) == (0, {})
    assert not (lake.silver.folder / "gold").exists()


def test_logs_are_kept_from_the_versions_that_the_figures_are_of(lake: KpiLake) -> None:
    assert lake.refresh.positions() == {}

    lake.take([Event(at=BEGINNING)])
    lake.silver.append([Event(at=BEGINNING, gamer="bob")])
    lake.refresh_gold()

    kept = {table: each.version for table, each in lake.refresh.positions().items()}
    assert kept == {source.path: 0 for source in SOURCES}


def test_every_column_has_a_comment(lake: KpiLake) -> None:
    lake.take([Event(at=BEGINNING)])

    found = {each.name: DeltaTable(lake.silver.folder / each.path) for each in kpi.ALL}
    assert {name: uncommented(table.schema().to_json()) for name, table in found.items()} == {
        name: [] for name in found
    }
    assert all(table.metadata().description for table in found.values())


def test_a_long_computation_says_again_and_again_that_it_goes_on(lake: KpiLake) -> None:
    steps: list[int] = []
    lake.refresh = KpiRefresh(lake.silver.store, now=lake.now, progress=lambda: steps.append(len(steps)))

    lake.take([*a_day(0, 10), *(replace(event, game="Bingo") for event in a_day(0, 10))])

    # Each game at least once.
    assert len(steps) >= 2


def test_the_path_of_a_file_of_sets_has_all_that_the_table_is_partitioned_by(lake: KpiLake) -> None:
    lake.take(a_day(0, 10))

    [file] = DeltaTable(lake.silver.folder / "gold/kpi_player_sets").file_uris()

    assert "/event_date=2026-06-01/game_name=Archery/" in file


@pytest.mark.parametrize(
    ("zone", "day", "begins", "hours"),
    [
        ("America/New_York", datetime(2026, 3, 8, tzinfo=UTC), 5, 23),
        ("America/New_York", datetime(2026, 11, 1, tzinfo=UTC), 4, 25),
        ("Asia/Kolkata", datetime(2026, 3, 8, tzinfo=UTC), -5.5, 24),
        ("UTC", datetime(2026, 3, 8, tzinfo=UTC), 0, 24),
    ],
)
def test_a_day_is_provisional_until_180_minutes_after_its_end_in_its_zone(
    zone: str, day: datetime, begins: float, hours: int, tmp_path: Path
) -> None:
    lake = KpiLake(Silver(tmp_path), today=day.date() + DAY, zones={"Archery": zone})
    lake.take([Event(at=day + timedelta(hours=12))])

    begin = day + timedelta(hours=begins)
    end = begin + timedelta(hours=hours)
    of_day = lake.figures("kpi_daily", "begins", "ends", "time_zone", "provisional_until")
    assert of_day == [(begin, end, zone, end + timedelta(minutes=180))]
    for table in ("kpi_active_players", "kpi_cohorts"):
        assert (day.date(), end + timedelta(minutes=180)) in lake.figures(table, "event_date", "provisional_until")
    lake.check()


def test_days_of_cohorts_begin_with_the_day_of_their_zone(lake: KpiLake) -> None:
    lake.zones = {"Archery": "Asia/Tokyo", "Bingo": "America/New_York"}
    lake.today, lake.hour = (BEGINNING + DAY).date(), 3
    lake.begin_again()
    lake.take([Event(at=BEGINNING + timedelta(hours=12), game=game) for game in ("Archery", "Bingo")])
    found = []
    for lake.hour in (3, 4, 14, 15):
        lake.run()
        lake.check()
        found.append(
            [lake.figures("kpi_cohorts", "game_name", "day").count((game, 1)) for game in ("Archery", "Bingo")]
        )

    assert found == [[1, 0], [1, 1], [1, 1], [1, 1]]
    assert ("Archery", 2) in lake.figures("kpi_cohorts", "game_name", "day")


def test_a_new_game_with_a_zone_computes_no_day_of_another_game_again(lake: KpiLake) -> None:
    lake.take([Event(at=BEGINNING, game=game) for game in ("Archery", "Bingo")])
    lake.zones = {"Chess": "Asia/Tokyo", "Bingo": "UTC"}
    lake.begin_again()

    assert not lake.run().rebuilt
    lake.silver.append([Event(at=BEGINNING + timedelta(hours=20), game="Chess")])
    done = lake.run()

    assert (done.rebuilt, done.days) == (False, 1)
    lake.check()


def test_another_zone_of_a_game_with_figures_computes_all_of_them_again(lake: KpiLake) -> None:
    lake.take([Event(at=BEGINNING + timedelta(hours=12))])
    lake.zones = {"Archery": "Asia/Tokyo"}
    lake.begin_again()

    assert lake.run().rebuilt
    assert not lake.run().rebuilt
    lake.check()
