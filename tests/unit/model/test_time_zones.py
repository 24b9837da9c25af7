"""A game's day is the date that the zone's clocks show, in Python and in gold's SQL alike."""

from datetime import UTC, date, datetime, timedelta
from importlib import resources
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.contract.time_zones import TimeZone, Zones, is_zone
from gamelake.scans.sql_engine import engine
from tests.unit.properties import examples

_NAMES = sorted(resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())
_EPOCH, _END = datetime(1970, 1, 2, tzinfo=UTC), datetime(2099, 12, 30, tzinfo=UTC)
_MOMENTS = st.datetimes(
    _EPOCH.replace(tzinfo=None), _END.replace(tzinfo=None), timezones=st.just(UTC), allow_imaginary=False
)


def clock(zone: str, moment: datetime) -> datetime:
    """What the zone's clocks show at a moment, by the rules of the locked package."""
    with resources.files("tzdata").joinpath("zoneinfo", *zone.split("/")).open("rb") as file:
        return moment.astimezone(ZoneInfo.from_file(file))


def changes(zone: str, near: datetime) -> list[datetime]:
    """The moments at which the zone's clocks are changed in the 400 days after a moment."""
    start = int(near.timestamp())
    spans = TimeZone(zone).spans(start, start + 400 * 86_400)
    return [datetime.fromtimestamp(span.start, UTC) for span in spans[1:]]


@st.composite
def zones_and_moments(draw: st.DrawFn) -> tuple[str, list[datetime]]:
    """A zone, and moments around changes of its clocks and around its midnights."""
    zone, moment = draw(st.sampled_from(_NAMES)), draw(_MOMENTS)
    moments = [moment, *changes(zone, moment)]
    midnights = [datetime.fromtimestamp(TimeZone(zone).begins(clock(zone, each).date()), UTC) for each in moments]
    near = [timedelta(0), timedelta(microseconds=1), timedelta(hours=1), timedelta(minutes=30), timedelta(hours=23)]
    return zone, [each + sign * by for each in (*moments, *midnights) for by in near for sign in (1, -1)]


@given(zones_and_moments())
@examples(100)
def test_the_day_of_any_moment_is_the_date_of_the_zone(drawn: tuple[str, list[datetime]]) -> None:
    zone, moments = drawn
    expected = [clock(zone, moment).date() for moment in moments]
    rows = pa.table(
        {
            "game_name": ["It's"] * len(moments),
            "event_time": pa.array(moments, pa.timestamp("us", "UTC")),
            "event_date": [moment.date() for moment in moments],
        }
    )
    with engine(threads=1) as sql:
        sql.give("events", rows)
        sql.set_reporting_date(Zones({"It's": zone}).sql(min(moments).date(), max(moments).date()))
        days = sql.table("SELECT reporting_date(game_name, event_time, event_date) AS day FROM events")

    assert [TimeZone(zone).day(moment) for moment in moments] == expected
    assert days.column("day").to_pylist() == expected


@given(zones_and_moments())
@examples(100)
def test_the_days_of_utc_that_a_day_has_are_those_of_its_moments(drawn: tuple[str, list[datetime]]) -> None:
    zone, moments = drawn
    for moment in moments:
        day = clock(zone, moment).date()
        utc_days = TimeZone(zone).utc_days_of(day)
        assert moment.date() in utc_days
        assert all(day in TimeZone(zone).days_of(each) for each in utc_days)


@given(zones_and_moments())
@examples(100)
def test_a_day_begins_and_ends_where_the_calendar_turns(drawn: tuple[str, list[datetime]]) -> None:
    zone, moments = drawn
    for day in {clock(zone, moment).date() for moment in moments}:
        begin = datetime.fromtimestamp(TimeZone(zone).begins(day), UTC)
        end = datetime.fromtimestamp(TimeZone(zone).ends(day), UTC)
        second = timedelta(seconds=1)
        assert clock(zone, begin - second).date() < day <= clock(zone, begin).date()
        assert clock(zone, end - second).date() <= day < clock(zone, end).date()


@given(zones_and_moments())
@examples(100)
def test_the_days_of_a_day_in_utc_are_known_in_advance(drawn: tuple[str, list[datetime]]) -> None:
    zone, moments = drawn
    zones = Zones({"Archery": zone})
    for moment in moments:
        utc_day, day = moment.date(), clock(zone, moment).date()
        assert day in zones.reporting_days([utc_day])
        assert utc_day in zones.utc_days([day])


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("America/New_York", date(2026, 3, 8), 23),
        ("America/New_York", date(2026, 11, 1), 25),
        ("Asia/Kolkata", date(2026, 3, 8), 24),
        ("Pacific/Apia", date(2011, 12, 30), 0),
        ("UTC", date(2026, 3, 8), 24),
    ],
)
def test_a_day_has_as_many_hours_as_the_clocks_show(zone: str, day: date, hours: int) -> None:
    assert TimeZone(zone).ends(day) - TimeZone(zone).begins(day) == hours * 3600


def test_days_at_the_ends_of_the_calendar_are_kept() -> None:
    zones = Zones({"Archery": "Asia/Tokyo"})

    assert zones.reporting_days([date.max, date.min, None]) == {date.max, date.min, date(1, 1, 2), None}
    assert zones.utc_days([None]) == {None}


def test_a_zone_without_rules_is_unknown() -> None:
    assert [is_zone(name) for name in ("Asia/Kolkata", "UTC", "Mars/Base", "../zones", "")] == [
        True,
        True,
        *[False] * 3,
    ]


def test_only_titles_of_another_zone_have_changed() -> None:
    former = Zones({"Archery": "Asia/Tokyo", "Bingo": "Asia/Kolkata"}).rules

    zones = Zones.of([("Archery", "Asia/Tokyo"), ("Bingo", "UTC"), ("Chess", "Europe/Berlin"), ("Darts", "UTC")])

    assert zones.changed_titles(former) == {"Bingo", "Chess"}
