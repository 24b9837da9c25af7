"""Goals: their bounds, their verdicts, and the figures that are compared with them."""

import pytest

from benchmarks.goals import Goal, GoalVerdict, figure_of, number, ratio, spread
from benchmarks.results import Machine, Measurement, Results

PART, RATE = "pipelines", "records/s"


def results(*samples: Measurement) -> Results:
    return Results(
        benchmark="test", measured_at="2026-01-01T00:00:00+00:00", commit="abc", machine=Machine(cores=2, cpu_model=""),
        settings={}, samples=samples,
    )  # fmt: skip


def measured(subject: str, value: float, number_of_round: int = 1, figure: str = RATE) -> Measurement:
    return Measurement(part=PART, subject=subject, round=number_of_round, values={figure: value})


def a_goal(*bounds: float, at_most: bool = False) -> Goal:
    return Goal("rate", bounds, figure_of(PART, "ours", RATE), at_most=at_most)


def test_each_step_of_a_goal_has_its_own_verdict() -> None:
    found = results(measured("ours", 0.8))

    assert a_goal(0.7, 1).bounds_text == "at least 0.7, then 1"
    assert a_goal(0.7, 1).verdict(found) == "first step reached, second step **falls short**"
    assert not a_goal(0.7, 1).is_reached(found)


def test_bounds_that_are_all_reached_or_all_missed_have_one_verdict() -> None:
    found = results(measured("ours", 5))

    assert a_goal(4, 5).verdict(found) == "reached"
    assert a_goal(6, 7).verdict(found) == "**falls short**"
    assert a_goal(5, at_most=True).verdict(found) == "reached"
    assert a_goal(4, at_most=True).verdict(found) == "**falls short**"


def test_the_median_of_all_rounds_decides() -> None:
    found = results(measured("ours", 1), measured("ours", 9, 2), measured("ours", 8, 3))

    assert a_goal(8).verdict(found) == "reached"
    assert a_goal(8).found(found) == "8 (1 to 9)"


def test_a_figure_that_was_not_measured_is_not_missed() -> None:
    assert a_goal(1).verdict(results()) == GoalVerdict.NOT_MEASURED
    assert a_goal(1).found(results()) == "-"
    assert a_goal(1).is_reached(results())


def test_a_rate_is_compared_with_the_fastest_other_one_of_its_round() -> None:
    found = results(
        measured("ours", 6), measured("peer", 2), measured("rival", 3),
        measured("ours", 2, 2), measured("peer", 4, 2), measured("ours", 1, 3),
    )  # fmt: skip

    assert ratio(PART, RATE, "ours", "peer", "rival")(found) == [2, 0.5]


def test_cpu_time_is_compared_with_the_cheapest_other_one_and_only_where_it_was_measured() -> None:
    cpu = [
        measured("ours", 6, figure="CPU s"),
        measured("peer", 4, figure="CPU s"),
        measured("rival", 8, figure="CPU s"),
    ]
    other = [measured("ours", 3, 2, figure="CPU s"), measured("peer", 1, 2)]

    assert ratio(PART, "CPU s", "ours", "peer", "rival", least=True)(results(*cpu, *other)) == [1.5]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.001, "0"), (3, "3"), (0.123, "0.12"), (148.44, "148.4"), (424448.2, "424,448"), (-22.3, "-22.30")],
)
def test_a_number_has_the_digits_that_matter(value: float, text: str) -> None:
    assert number(value) == text


def test_one_value_has_no_spread() -> None:
    assert spread([2.5], " s") == "2.50 s"
    assert spread([2.5, 1.5, 3.5], " s") == "2.50 s (1.50 to 3.50)"
    assert spread([]) == ""
