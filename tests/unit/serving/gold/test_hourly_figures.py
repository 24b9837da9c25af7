"""The figures of each hour are those of silver, and a late event changes them however late it is."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.refresh import Refreshed, RefreshOutcome
from gamelake.serving.gold.runner import GoldTables, attempt
from tests.support.silver_events import BEGINNING, Event, Silver

CONTRACT = load_gold(Path("contracts/games.yaml"))
HOUR, DAY, SECOND = timedelta(hours=1), timedelta(days=1), timedelta(seconds=1)
FIVE_PAST = BEGINNING + timedelta(minutes=5)


@pytest.fixture
def silver(tmp_path: Path) -> Silver:
    return Silver(tmp_path)


def refreshed(silver: Silver, name: str) -> RefreshOutcome:
    [table] = (each for each in GoldTables(silver.store, CONTRACT).now() if each.table == f"gold/{name}")
    done = attempt(table)
    assert isinstance(done, Refreshed), done.reason
    return done.outcome


def rows(silver: Silver, name: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = silver.table(f"gold/{name}").sort_by("hour").to_pylist()
    return found


def test_an_hour_has_its_figures_and_is_provisional_for_180_minutes(silver: Silver) -> None:
    silver.append(
        [
            Event(at=BEGINNING),
            Event(at=FIVE_PAST, name="purchase", amount=5.0),
            Event(at=FIVE_PAST, name="smoke_test"),
            Event(at=BEGINNING + HOUR),
        ]
    )
    refreshed(silver, "kpi_hourly")

    by_hour = rows(silver, "kpi_hourly")

    assert by_hour[0] == {
        "event_date": BEGINNING.date(),
        "hour": BEGINNING,
        "game_name": "Archery",
        "platform": "ios",
        "app_version": "1.0",
        "events": 2,
        "purchases": 1,
        "bookings": Decimal(5),
        "provisional_until": BEGINNING + 4 * HOUR,
    }
    assert [each["provisional_until"] for each in by_hour] == [BEGINNING + 4 * HOUR, BEGINNING + 5 * HOUR]


def test_an_event_that_comes_after_weeks_changes_its_hour(silver: Silver) -> None:
    silver.append([Event(at=FIVE_PAST), Event(at=BEGINNING + 20 * DAY)])
    assert refreshed(silver, "kpi_hourly") is RefreshOutcome.REBUILT
    silver.append([Event(at=FIVE_PAST, name="purchase", amount=2.0, taken_in=BEGINNING + 30 * DAY)])

    assert refreshed(silver, "kpi_hourly") is RefreshOutcome.MERGED

    changed, other = rows(silver, "kpi_hourly")
    assert (changed["events"], changed["purchases"], changed["bookings"]) == (2, 1, Decimal(2))
    assert changed["provisional_until"] == BEGINNING + 4 * HOUR
    assert other["events"] == 1


def test_an_event_is_late_that_comes_more_than_180_minutes_after_its_hour(silver: Silver) -> None:
    limit = BEGINNING + 4 * HOUR
    silver.append(
        [
            Event(at=FIVE_PAST, taken_in=limit),
            Event(at=BEGINNING, taken_in=limit + SECOND),
            Event(at=FIVE_PAST, taken_in=limit + 30 * DAY, platform=None),
            Event(at=FIVE_PAST, arrival_is_known=False),
            Event(at=FIVE_PAST, name="smoke_test", taken_in=limit + DAY),
        ]
    )
    refreshed(silver, "kpi_late")

    assert rows(silver, "kpi_late") == [
        {"event_date": BEGINNING.date(), "hour": BEGINNING, "game_name": "Archery", "arrived": 4, "late": 2}
    ]
