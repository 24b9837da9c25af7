"""Performance targets: their bounds, and the figures that are compared with them."""

import pytest

from benchmarks.approaches import ALONE, CEILING, DELTA_RS, DUCKDB, LONG_ALONE, TEXTBOOK, fan_out_name
from benchmarks.results import FreshnessMeasurement, Lap, MachineInfo, Measurement, Results
from benchmarks.targets import TARGETS, PerformanceTarget, TargetVerdict, cpu_ratios, rate_ratios, whole_rate_ratios

MACHINE = MachineInfo(cores=2, memory_bytes=2**30, cpu_model="", system="", versions={})


def a_lap(seconds: float, cpu_seconds: float | None = None) -> Lap:
    return Lap(seconds=seconds, cpu_seconds=cpu_seconds, kafka_cpu_seconds=None, other_cpu_seconds=None)


def measured(
    way: str, seconds: float, *, cpu: float | None = None, number: int = 1, batches: float = 0, size: int = 0
) -> Measurement:
    """A million records in some seconds."""
    lap = a_lap(seconds, cpu)
    return Measurement(way=way, round=number, records=1_000_000, lap=lap, trigger_seconds=batches, value_bytes=size)


def results(*measurements: Measurement, freshness: tuple[FreshnessMeasurement, ...] = ()) -> Results:
    return Results(
        measured_at="2026-01-01", commit="", events=1, wire_bytes_per_event=1, machine=MACHINE,
        measurements=measurements, freshness=freshness,
    )  # fmt: skip


def the_steps(text: str) -> tuple[PerformanceTarget, PerformanceTarget]:
    first, second = (target for target in TARGETS if target.text.startswith(text) and target.text.endswith(" step"))
    return first, second


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("fan-out into 30 game tables, of Spark's ceiling", ("at least 0.7", "at least 1")),
        ("CPU seconds per million records into 30", ("at most 5.5 s", "at most 4 s")),
        ("fan-out into 30 game tables, times the textbook", ("at least 12", "at least 16")),
        ("1-KB events, one table, no bronze: MB/s per CPU core", ("at least 40", "at least 60")),
        ("freshness", ("at most 1.2 s", "at most 0.8 s")),
    ],
)
def test_a_figure_in_steps_has_two_bounds(text: str, bounds: tuple[str, str]) -> None:
    assert tuple(target.bound_text for target in the_steps(text)) == bounds


def test_each_step_has_its_own_verdict() -> None:
    found = results(
        measured(CEILING, 4), measured(TEXTBOOK, 70), measured(fan_out_name(30), 5, cpu=4.5),
        measured(LONG_ALONE, 10, cpu=20, size=1_000_000_000),
    )  # fmt: skip

    def verdicts(text: str) -> list[str]:
        return [target.verdict(found) for target in the_steps(text)]

    reached, falls_short = TargetVerdict.REACHED, TargetVerdict.FALLS_SHORT
    assert verdicts("fan-out into 30 game tables, of Spark's ceiling") == [reached, falls_short]
    assert verdicts("fan-out into 30 game tables, times the textbook") == [reached, falls_short]
    assert verdicts("CPU seconds per million records into 30") == [reached, falls_short]
    assert verdicts("1-KB events, one table, no bronze: MB/s per CPU core") == [reached, falls_short]
    assert verdicts("freshness") == [TargetVerdict.NOT_MEASURED] * 2


def test_a_rate_is_compared_with_the_fastest_other_one_of_its_round() -> None:
    found = results(
        measured(ALONE, 2), measured(DELTA_RS, 4), measured(DUCKDB, 3),
        measured(ALONE, 6, number=2), measured(DELTA_RS, 3, number=2), measured(ALONE, 1, number=3),
    )  # fmt: skip

    assert whole_rate_ratios(found, ALONE, DELTA_RS, DUCKDB) == [pytest.approx(1.5), pytest.approx(0.5)]


def test_the_start_of_a_query_counts_only_against_what_is_no_query() -> None:
    found = results(measured(ALONE, 4, batches=2), measured(DELTA_RS, 4))

    assert rate_ratios(found, ALONE, DELTA_RS) == [2]
    assert whole_rate_ratios(found, ALONE, DELTA_RS) == [1]


def test_cpu_time_is_compared_with_the_cheapest_other_one() -> None:
    found = results(measured(ALONE, 1, cpu=6), measured(DELTA_RS, 1, cpu=4), measured(DUCKDB, 1, cpu=8))

    assert cpu_ratios(found, ALONE, DELTA_RS, DUCKDB) == [1.5]
    assert cpu_ratios(results(measured(ALONE, 1), measured(DUCKDB, 1)), ALONE, DUCKDB) == []


def test_a_loss_against_a_consumer_without_spark_falls_short() -> None:
    found = results(measured(ALONE, 4, cpu=6), measured(DELTA_RS, 3, cpu=3))
    compared = [target for target in TARGETS if target.text.startswith("one table, no bronze")]

    assert [target.verdict(found) for target in compared] == [TargetVerdict.FALLS_SHORT] * 2


def test_megabytes_are_of_record_values_and_per_second_of_the_clock_or_of_a_core() -> None:
    measurement = measured(LONG_ALONE, 8, cpu=10, size=400_000_000)

    assert (measurement.megabytes_per_second, measurement.megabytes_per_cpu_second) == (50, 40)
    assert measured(LONG_ALONE, 8, cpu=10).megabytes_per_second is None
    assert measured(LONG_ALONE, 8, size=1).megabytes_per_cpu_second is None
