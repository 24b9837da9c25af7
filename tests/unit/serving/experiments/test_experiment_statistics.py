"""The tables of experiments: who was exposed, what counts, and what follows from late events, erasures and faults."""

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from tests.unit.serving.experiments.experiment_lake import (
    CONTROL,
    EXPERIMENT,
    SHOP,
    SPEC,
    START,
    ExperimentLake,
    GameEvent,
    expected,
    exposure,
    purchase,
)

_NUMBERS = ("players", "total", "total_squares", "before", "before_squares", "crossed", "excluded")


@pytest.fixture
def lake(tmp_path: Path) -> ExperimentLake:
    return ExperimentLake(tmp_path)


def check(lake: ExperimentLake) -> None:
    """Compare all statistics with those that are computed event by event."""
    found = {
        (row["event_date"], row["metric"], row["variant"]): tuple(row[name] for name in _NUMBERS)
        for row in lake.rows("statistics")
    }
    wanted = expected(lake)
    assert found.keys() == wanted.keys()
    for key, numbers in wanted.items():
        assert found[key] == pytest.approx(numbers, abs=1e-6), key


def test_purchases_before_the_exposure_dont_count(lake: ExperimentLake) -> None:
    lake.take(purchase(1, "anna", 5), exposure(2, "anna", SHOP), purchase(3, "anna", 7), purchase(30, "anna", 11))

    assert lake.last("bookings")[SHOP] == (1, 18, 18**2)
    check(lake)


def test_players_who_were_never_exposed_are_in_no_variant(lake: ExperimentLake) -> None:
    lake.take(exposure(2, "anna", SHOP), purchase(3, "ben", 7))

    assert lake.last("payers") == {CONTROL: (0, 0, 0), SHOP: (1, 0, 0)}


def test_a_player_who_met_two_variants_is_excluded_and_counted(lake: ExperimentLake) -> None:
    lake.take(exposure(2, "anna", SHOP), exposure(30, "anna", CONTROL), purchase(40, "anna", 7))

    assert lake.last("bookings") == {CONTROL: (0, 0, 0), SHOP: (0, 0, 0)}
    assert {row["excluded"] for row in lake.rows("statistics")} == {1}


def test_a_payer_counts_once(lake: ExperimentLake) -> None:
    lake.take(exposure(2, "anna", SHOP), *(purchase(hours, "anna", 5) for hours in (3, 4, 28, 60)))

    assert lake.last("payers")[SHOP] == (1, 1, 1)


def test_an_earlier_exposure_that_comes_late_moves_the_beginning(lake: ExperimentLake) -> None:
    lake.take(exposure(50, "anna", SHOP), purchase(30, "anna", 5))
    assert lake.last("bookings")[SHOP] == (1, 0, 0)

    lake.take(exposure(20, "anna", SHOP))

    assert lake.last("bookings")[SHOP] == (1, 5, 25)
    check(lake)


def test_statistics_equal_those_computed_event_by_event_after_any_commits(lake: ExperimentLake) -> None:
    draw = random.Random(7)
    for _ in range(4):
        lake.take(*(_random_event(draw) for _ in range(150)))
        check(lake)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_statistics_of_a_game_with_a_time_zone_equal_those_computed_event_by_event(tmp_path: Path, zone: str) -> None:
    draw, lake = random.Random(zone), ExperimentLake(tmp_path, zone=zone)
    for _ in range(2):
        lake.take(*(_random_event(draw) for _ in range(150)))
        check(lake)

    days = {row["event_date"] for row in lake.rows("exposures")}
    assert SPEC.start <= min(days) <= max(days) <= SPEC.last_day
    assert lake.run().days == 0


def test_a_game_with_another_time_zone_has_all_days_computed_again(tmp_path: Path) -> None:
    lake = ExperimentLake(tmp_path)
    lake.take(exposure(23, "anna", SHOP), purchase(25, "anna", 5))
    before = {row["event_date"] for row in lake.rows("exposures")}

    moved = ExperimentLake(tmp_path, zone="Asia/Tokyo", happened=lake.happened)
    moved.run()

    assert {row["event_date"] for row in moved.rows("exposures")} == {day + timedelta(days=1) for day in before}
    check(moved)


def _random_event(draw: random.Random) -> GameEvent:
    gamer = f"g{draw.randrange(25)}"
    hours = draw.uniform(-400, 300)
    kind = draw.random()
    if kind < 0.15:
        variant = draw.choice((CONTROL, SHOP)) if draw.random() < 0.1 else (CONTROL, SHOP)[int(gamer[1:]) % 2]
        return exposure(hours, gamer, variant, draw.choice((EXPERIMENT, EXPERIMENT, "other")))
    return purchase(hours, gamer, draw.randrange(1, 20)) if kind < 0.5 else GameEvent(hours=hours, gamer=gamer)


def test_an_erasure_removes_a_player_everywhere_and_the_statistics_follow(lake: ExperimentLake) -> None:
    lake.take(exposure(2, "anna", SHOP), purchase(3, "anna", 7), exposure(2, "ben", SHOP), purchase(30, "ben", 11))

    lake.erase("anna")
    lake.run()

    assert {row["gamer_id"] for row in lake.rows("exposures")} == {"ben"}
    assert lake.last("bookings")[SHOP] == (1, 11, 121)
    check(lake)


def test_only_changed_days_and_experiments_are_computed_again(lake: ExperimentLake) -> None:
    lake.take(*(exposure(24 * day, f"g{day}", SHOP) for day in range(8)))

    assert lake.run() == msgspec.structs.replace(lake.run(), days=0, experiments=())
    again = lake.take(exposure(24 * 3, "ben", CONTROL))

    assert again.days == 1
    assert again.experiments == (EXPERIMENT,)


def test_an_experiment_that_is_over_is_not_computed_again(lake: ExperimentLake) -> None:
    lake.take(exposure(2, "anna", SHOP), purchase(3, "anna", 7))

    done = lake.take(exposure(24 * 12, "ben", SHOP))

    assert done.days == 0
    assert lake.last("bookings")[SHOP] == (1, 7, 49)


def test_an_experiment_that_fails_stops_no_other(tmp_path: Path) -> None:
    broken = msgspec.structs.replace(SPEC, name="broken", primary="no_such_metric")
    lake = ExperimentLake(tmp_path, experiments=(broken, SPEC))

    done = lake.take(exposure(2, "anna", SHOP))

    assert done.failed == ("broken",)
    assert done.experiments == (EXPERIMENT,)


def test_a_game_without_the_column_of_exposures_has_none(tmp_path: Path) -> None:
    other = msgspec.structs.replace(SPEC, name="other", game="archery_duel")
    lake = ExperimentLake(tmp_path, experiments=(other, SPEC))

    done = lake.take(exposure(2, "anna", SHOP))

    assert done.failed == ()
    assert lake.last("bookings", "other") == {CONTROL: (0, 0, 0), SHOP: (0, 0, 0)}


def test_an_experiment_without_exposures_has_tables_that_queries_can_read(lake: ExperimentLake) -> None:
    lake.take(purchase(3, "anna", 7))

    assert lake.rows("exposures") == []
    assert {row["players"] for row in lake.rows("results")} == {0}


def test_a_changed_experiment_is_computed_again(lake: ExperimentLake) -> None:
    lake.take(exposure(-20, "anna", SHOP), purchase(3, "anna", 7), exposure(2, "ben", SHOP))
    assert lake.last("bookings")[SHOP] == (1, 0, 0)

    earlier = msgspec.structs.replace(SPEC, start=START.date().replace(day=10), end=None)
    contracts = replace(lake.refresh.contracts, experiments=(earlier,))
    lake.refresh = type(lake.refresh)(lake.store, contracts, now=lake.refresh.now)
    lake.run()

    assert lake.last("bookings")[SHOP] == (2, 7, 49)


def played(draw: random.Random, number: int, variant: str, amount: float) -> list[GameEvent]:
    """A player's exposure, purchases and sessions."""
    gamer = f"{variant}-{number}"
    starts = [GameEvent(hours=24 * day + 5, gamer=gamer, name="session_start") for day in range(draw.randrange(3))]
    return [exposure(1, gamer, variant), purchase(2, gamer, amount + draw.random()), *starts]


def verdicts(lake: ExperimentLake) -> dict[str, str]:
    """The verdict on each metric on the last day."""
    rows = sorted(lake.rows("results"), key=lambda row: str(row["event_date"]))
    return {row["metric"]: row["verdict"] for row in rows}


def test_a_planted_effect_becomes_a_verdict_and_metrics_without_one_stay_undecided(lake: ExperimentLake) -> None:
    draw = random.Random(3)
    players = [(number, variant, amount) for number in range(150) for variant, amount in ((CONTROL, 1), (SHOP, 2))]

    lake.take(*(event for player in players for event in played(draw, *player)))

    assert verdicts(lake) == {"bookings": "higher", "payers": "undecided", "sessions_begun": "undecided"}
    newest = max(lake.rows("results"), key=lambda row: (str(row["event_date"]), row["metric"] == "bookings"))
    assert newest["low"] < 1 < newest["high"]
    assert (newest["players"], newest["control_players"], newest["role"]) == (150, 150, "primary")
    assert newest["sample_ratio_p"] == 1


def test_a_guardrail_that_falls_is_harmed(lake: ExperimentLake) -> None:
    more = [
        GameEvent(hours=3 + hour, gamer=f"c{n}", name="session_start") for n in range(150) for hour in range(1 + n % 5)
    ]
    exposures = [exposure(1, f"{variant[0]}{n}", variant) for n in range(150) for variant in (CONTROL, SHOP)]

    lake.take(*exposures, *more)

    assert verdicts(lake)["sessions_begun"] == "harmed"


def test_numbers_of_players_that_dont_fit_the_shares_are_no_verdict(lake: ExperimentLake) -> None:
    draw = random.Random(3)
    players = [(number, SHOP, 2) for number in range(150)] + [(number, CONTROL, 1) for number in range(90)]

    lake.take(*(event for player in players for event in played(draw, *player)))

    assert set(verdicts(lake).values()) == {"sample_ratio_mismatch"}


def test_days_without_players_have_no_verdict(lake: ExperimentLake) -> None:
    lake.take(exposure(2, "anna", SHOP))

    assert {row["p_value"] for row in lake.rows("results")} == {None}
    assert {row["verdict"] for row in lake.rows("results")} == {"undecided"}
