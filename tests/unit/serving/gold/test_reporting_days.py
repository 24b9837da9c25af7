"""The days of gold's tables are those of the game's time zone, whatever changes in silver or in the contract."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from gamelake.contract.games import GamesContract, GameSpec
from gamelake.contract.time_zones import TimeZone
from gamelake.model.naming import SILVER_EVENTS
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.refresh import Refreshed, RefreshOutcome
from gamelake.serving.gold.runner import GoldTables, attempt
from tests.support.silver_events import Event, Silver
from tests.unit.properties import examples

CONTRACT = load_gold(Path("contracts/games.yaml"))
OF_ALL, OF_A_GAME = "gold/all_player_days", "gold/archery_daily_agg"
ARCHERY = "silver/archery_events"
# Clocks in New York are set forward at 07:00 in UTC on 8 March, and back at 06:00 on 1 November.
SPRING, FALL = datetime(2026, 3, 8, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)


def contract(zones: Mapping[str, str]) -> GamesContract:
    """A contract of the games Archery, Bingo and Chess, with these zones."""
    games = [
        GameSpec(name=title.lower(), match=(title,), time_zone=zones.get(title, "UTC"))
        for title in ("Archery", "Bingo", "Chess")
    ]
    return msgspec.structs.replace(CONTRACT, games=tuple(games))


def refresh(silver: Silver, zones: Mapping[str, str], table: str = OF_ALL) -> RefreshOutcome:
    """Bring one gold table up to date, as a new process does."""
    [gold] = [each for each in GoldTables(silver.store, contract(zones)).now() if each.table == table]
    done = attempt(gold)
    assert isinstance(done, Refreshed), done.reason
    return done.outcome


def days(silver: Silver, table: str = OF_ALL) -> dict[date, int]:
    """The number of events, or of players, by day."""
    rows = silver.table(table).to_pylist()
    found = Counter[date]()
    for row in rows:
        found[row["event_date"]] += row.get("event_count", row.get("players"))
    return dict(found)


def test_events_count_on_the_day_of_their_game(tmp_path: Path) -> None:
    silver, zones = Silver(tmp_path), {"Archery": "Asia/Tokyo", "Bingo": "America/New_York"}
    silver.append([Event(at=datetime(2026, 6, 1, 20, tzinfo=UTC), game=game) for game in ("Archery", "Bingo", "Chess")])
    silver.append([Event(at=datetime(2026, 6, 2, 3, tzinfo=UTC), game=game) for game in ("Archery", "Bingo", "Chess")])

    refresh(silver, zones)

    rows = silver.table(OF_ALL).to_pylist()
    assert sorted((row["game_name"], row["event_date"].day, row["event_count"]) for row in rows) == [
        ("Archery", 2, 2),
        ("Bingo", 1, 2),
        ("Chess", 1, 1),
        ("Chess", 2, 1),
    ]


def test_an_hour_in_which_a_day_begins_has_a_row_for_each_day(tmp_path: Path) -> None:
    silver, hour = Silver(tmp_path), datetime(2026, 6, 1, 18, tzinfo=UTC)
    silver.append([Event(at=hour + timedelta(minutes=minute)) for minute in (29, 30, 31)])

    refresh(silver, {"Archery": "Asia/Kolkata"}, "gold/kpi_hourly")

    rows = silver.table("gold/kpi_hourly").to_pylist()
    assert sorted((row["event_date"].day, row["hour"], row["events"]) for row in rows) == [(1, hour, 1), (2, hour, 2)]


@pytest.mark.parametrize("game", ["Bingo", "Chess"])
def test_a_zone_of_a_game_without_rows_rebuilds_nothing(game: str, tmp_path: Path) -> None:
    silver, evening = Silver(tmp_path), datetime(2026, 6, 1, 20, tzinfo=UTC)
    silver.append([Event(at=evening)])
    refresh(silver, {"Archery": "Asia/Tokyo"})
    zones = {"Archery": "Asia/Tokyo", game: "America/New_York"}

    assert refresh(silver, zones) is RefreshOutcome.UNCHANGED
    silver.append([Event(at=evening + timedelta(hours=7), game=game)])
    assert refresh(silver, zones) is RefreshOutcome.MERGED

    assert days(silver) == {date(2026, 6, 2): 1, date(2026, 6, 1): 1}


@pytest.mark.parametrize("table", [OF_ALL, OF_A_GAME])
def test_another_zone_of_a_game_with_rows_rebuilds_its_tables(table: str, tmp_path: Path) -> None:
    silver = Silver(tmp_path)
    events = [Event(at=datetime(2026, 6, 1, hour, tzinfo=UTC)) for hour in (2, 20)]
    for source in (SILVER_EVENTS, ARCHERY):
        silver.append(events, source)
    outcomes, found = [], []
    for zones in ({}, {"Archery": "Asia/Tokyo"}, {"Archery": "Asia/Tokyo"}, {"Archery": "America/New_York"}, {}):
        outcomes.append(refresh(silver, zones, table))
        found.append([(day.month, day.day) for day in sorted(days(silver, table))])

    rebuilt, unchanged = RefreshOutcome.REBUILT, RefreshOutcome.UNCHANGED
    assert outcomes == [rebuilt, rebuilt, unchanged, rebuilt, rebuilt]
    assert found == [[(6, 1)], [(6, 1), (6, 2)], [(6, 1), (6, 2)], [(5, 31), (6, 1)], [(6, 1)]]


def test_a_zone_without_rows_does_not_hide_that_another_one_has_changed(tmp_path: Path) -> None:
    silver = Silver(tmp_path)
    silver.append([Event(at=datetime(2026, 6, 1, 20, tzinfo=UTC))])
    refresh(silver, {"Archery": "Asia/Tokyo"})

    assert refresh(silver, {"Archery": "UTC", "Bingo": "Asia/Tokyo"}) is RefreshOutcome.REBUILT
    assert days(silver) == {date(2026, 6, 1): 1}


_EVENTS = st.lists(
    st.builds(
        Event,
        at=st.builds(
            lambda day, hour, minute: day + timedelta(hours=hour, minutes=minute),
            st.sampled_from([SPRING, FALL]),
            st.integers(-30, 54),
            st.sampled_from([0, 29, 30, 59]),
        ),
        gamer=st.sampled_from(["ann", "bob"]),
        session=st.just("s"),
    ),
    min_size=1,
    max_size=5,
)


@given(
    st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati", "Pacific/Niue"]),
    st.lists(st.tuples(_EVENTS, st.sampled_from(["append", "delete", "restore"])), min_size=1, max_size=4),
)
@examples(15)
def test_tables_by_day_equal_silver_across_midnight_and_changes_of_clocks(
    tmp_path_factory: pytest.TempPathFactory, zone: str, steps: Sequence[tuple[Sequence[Event], str]]
) -> None:
    silver = Silver(tmp_path_factory.mktemp("lake"))
    for events, change in steps:
        for source in (SILVER_EVENTS, ARCHERY):
            silver.append(events, source)
            table = DeltaTable(silver.folder / source)
            if change == "delete":
                table.delete(f"event_time = '{events[0].at:%Y-%m-%dT%H:%M:%S}Z'")
            if change == "restore" and table.version() > 1:
                table.restore(table.version() - 1)
        for name, source in ((OF_ALL, SILVER_EVENTS), (OF_A_GAME, ARCHERY)):
            refresh(silver, {"Archery": zone}, name)
            times = [row["event_time"] for row in silver.table(source).to_pylist()]
            assert set(days(silver, name)) == {TimeZone(zone).day(time) for time in times}
    counted = Counter(TimeZone(zone).day(row["event_time"]) for row in silver.table(SILVER_EVENTS).to_pylist())
    players = {(TimeZone(zone).day(row["event_time"]), row["gamer_id"]) for row in silver.table(ARCHERY).to_pylist()}
    assert days(silver) == counted
    assert days(silver, OF_A_GAME) == Counter(day for day, _ in players)
