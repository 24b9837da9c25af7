"""What Prometheus is shown of KPIs: one hour and one day of all games, and nothing old."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gamelake.observability.kpis import KpiReporter, newest_figures
from gamelake.observability.metrics.serving.kpis import KpiTelemetry
from gamelake.serving.kpis.refresh import KpisRefreshed
from tests.support.silver_events import BEGINNING, Event, Silver
from tests.unit.serving.kpis.kpi_lake import KpiLake

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@dataclass
class Shown:
    """A lakehouse with KPIs, and what is scraped of them."""

    lake: KpiLake
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    telemetry: KpiTelemetry = field(init=False)

    def __post_init__(self) -> None:
        """Begin as gold's job does."""
        self.telemetry = KpiTelemetry(self.registry)

    def bring(self, events: Sequence[Event], now: datetime = BEGINNING + 10 * DAY) -> None:
        """Show the figures of a moment, with more events."""
        self.lake.take(events)
        self.telemetry.show(newest_figures(self.lake.refresh, now))

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, {"title": "Archery", **labels})

    def titles(self, name: str) -> set[str]:
        samples = [sample for metric in self.registry.collect() for sample in metric.samples if sample.name == name]
        assert not any(math.isnan(sample.value) for sample in samples)
        return {sample.labels["title"] for sample in samples}


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(KpiLake(Silver(tmp_path)))


def test_the_newest_day_and_hour_are_shown(shown: Shown) -> None:
    yesterday = [Event(at=BEGINNING, gamer=f"g{n}", session=f"s{n}") for n in range(4)]
    today = [
        Event(at=BEGINNING + DAY, gamer="g0", session="t0"),
        Event(at=BEGINNING + DAY + HOUR, gamer="g1", session="t1", name="purchase", amount=4.99),
        Event(at=BEGINNING + DAY, gamer="g5", session="t1", taken_in=BEGINNING + DAY + 5 * HOUR),
    ]

    shown.bring([*yesterday, *today])

    assert shown.value("gamelake_kpi_day_events") == 3
    assert shown.value("gamelake_kpi_day_late_events") == 1
    assert shown.value("gamelake_kpi_hour_events") == 1
    assert shown.value("gamelake_kpi_hour_bookings") == 4.99
    assert shown.value("gamelake_kpi_active_players", window="1d") == 3
    assert shown.value("gamelake_kpi_active_players", window="7d") == 5
    assert shown.value("gamelake_kpi_new_players") == 1
    assert shown.value("gamelake_kpi_conversion_ratio") == 1 / 3
    assert shown.value("gamelake_kpi_retention_ratio", after="1d") == 0.5
    assert shown.value("gamelake_kpi_ltv", after="1d") == 4.99 / 4
    assert shown.registry.get_sample_value("gamelake_kpi_newest_hour_timestamp_seconds") == (
        (BEGINNING + DAY + HOUR).timestamp()
    )


def test_a_new_lakehouse_shows_no_figures(shown: Shown) -> None:
    shown.bring([])

    assert shown.titles("gamelake_kpi_day_events") == set()


def test_a_silent_games_last_figures_are_not_shown(shown: Shown) -> None:
    shown.bring([Event(at=BEGINNING + 23 * HOUR, game=game) for game in ("Archery", "Bingo")])
    assert shown.titles("gamelake_kpi_hour_events") == {"Archery", "Bingo"}

    shown.bring([Event(at=BEGINNING + DAY)])

    for name in ("hour_events", "day_events", "day_bookings", "active_players", "session_seconds", "day_late_events"):
        assert shown.titles(f"gamelake_kpi_{name}") == {"Archery"}, name


def test_late_events_of_an_older_day_do_not_take_the_newest_ones_place(shown: Shown) -> None:
    shown.bring([Event(at=BEGINNING + DAY)])

    shown.bring([Event(at=BEGINNING), Event(at=BEGINNING)])

    assert shown.value("gamelake_kpi_day_events") == 1


def test_an_hour_and_a_day_that_have_not_begun_are_not_the_newest(shown: Shown) -> None:
    ahead = [Event(at=BEGINNING + n * DAY, game="Bingo") for n in (1, 3_000)]
    hours = [Event(at=BEGINNING + n * HOUR, name="purchase", amount=1.0) for n in (1, 2, 3)]

    shown.bring([*ahead, *hours], now=BEGINNING + 2 * HOUR)

    assert shown.titles("gamelake_kpi_day_events") == {"Archery"}
    assert shown.registry.get_sample_value("gamelake_kpi_newest_hour_timestamp_seconds") == (
        (BEGINNING + 2 * HOUR).timestamp()
    )


def test_a_game_without_sessions_has_no_length_of_sessions_and_leaves_that_of_others(shown: Shown) -> None:
    with_sessions = Event(at=BEGINNING, gamer="g0", session="s0")
    shown.bring([with_sessions, replace(with_sessions, game="Bingo", session=None)])

    assert shown.titles("gamelake_kpi_session_seconds") == {"Archery"}
    assert shown.titles("gamelake_kpi_arppu") == set()


def test_figures_are_behind_by_the_oldest_commit_that_they_lack(shown: Shown) -> None:
    lake, reporter = shown.lake, KpiReporter(shown.telemetry, shown.lake.refresh)

    def behind() -> float:
        return shown.registry.get_sample_value("gamelake_kpis_seconds_behind") or 0

    lake.silver.append([Event(at=BEGINNING)])
    reporter.failed()
    assert behind() > 0

    reporter.refreshed(lake.run())
    assert behind() == 0

    lake.silver.append([Event(at=BEGINNING)])
    reporter.failed()
    first = behind()
    lake.refresh_gold()
    reporter.failed()
    assert behind() >= first > 0

    reporter.refreshed(lake.refresh())
    assert behind() == 0


def test_the_job_says_how_long_refreshes_take_and_which_games_fail(shown: Shown) -> None:
    KpiReporter(shown.telemetry, shown.lake.refresh).refreshed(KpisRefreshed(failed=("Archery",), seconds=1.5))

    assert shown.registry.get_sample_value("gamelake_kpis_failed_games") == 1
    assert shown.registry.get_sample_value("gamelake_kpis_refresh_seconds_sum") == 1.5


def test_a_job_that_begins_shows_what_the_tables_have(shown: Shown) -> None:
    today = datetime.combine(datetime.now(UTC).date(), datetime.min.time(), UTC)
    shown.lake.take([Event(at=today), Event(at=today)])
    shown.lake.begin_again()

    KpiReporter(shown.telemetry, shown.lake.refresh).refreshed(shown.lake.run())

    assert shown.value("gamelake_kpi_day_events") == 2


def test_each_game_shows_its_own_present_day(tmp_path: Path) -> None:
    evening = BEGINNING + 20 * HOUR
    zones = {"Archery": "Asia/Tokyo", "Bingo": "America/New_York", "Chess": "UTC"}
    shown = Shown(KpiLake(Silver(tmp_path), zones=zones))
    games = ("Archery", "Bingo", "Chess", "Chess")

    shown.bring([Event(at=evening - 6 * HOUR)], now=evening)
    shown.bring([Event(at=evening, game=game) for game in games], now=evening + HOUR)

    # In Tokyo the next day has begun: the event six hours before was of the day before.
    assert [shown.value("gamelake_kpi_day_events", title=game) for game in games] == [1, 1, 2, 2]


def test_a_game_without_events_on_its_present_day_shows_nothing_old(tmp_path: Path) -> None:
    zones = {"Archery": "Asia/Tokyo", "Bingo": "UTC"}
    shown = Shown(KpiLake(Silver(tmp_path), zones=zones))

    shown.bring([Event(at=BEGINNING + 14 * HOUR), Event(at=BEGINNING + 16 * HOUR, game="Bingo")], BEGINNING + 17 * HOUR)

    assert shown.titles("gamelake_kpi_day_events") == {"Bingo"}


def test_an_hour_of_two_days_is_shown_whole(tmp_path: Path) -> None:
    shown = Shown(KpiLake(Silver(tmp_path), zones={"Archery": "Asia/Kolkata"}))

    shown.bring(
        [Event(at=BEGINNING + 18 * HOUR + timedelta(minutes=minute)) for minute in (20, 40)], BEGINNING + 19 * HOUR
    )

    assert shown.value("gamelake_kpi_hour_events") == 2
