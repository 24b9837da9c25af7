"""Performance targets: figures, the bounds that they must reach, and their values in a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from benchmarks.approaches import (
    ALONE,
    CEILING,
    CEILING_OF_COLUMNS,
    DEDUP_BY_SPARK,
    DELTA_RS,
    DUCKDB,
    DURING_COMPACTION,
    LONG_ALONE,
    LONG_DELTA_RS,
    LONG_DUCKDB,
    NO_DEDUP,
    TEXTBOOK,
    WITH_RULES,
    fan_out_name,
)
from benchmarks.results import Measurement, Results

# Of figures that have two bounds, the second one harder.
STEPS = ("first step", "second step")


class TargetVerdict(StrEnum):
    """Whether a figure reaches its bound."""

    REACHED = "reached"
    FALLS_SHORT = "**falls short**"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class PerformanceTarget:
    """A figure with its bound; its median must be at least the bound, or at most with `at_most`."""

    text: str
    bound: float
    unit: str
    values: Callable[[Results], Sequence[float]]
    at_most: bool = False

    @property
    def bound_text(self) -> str:
        """The bound as text."""
        return f"{'at most' if self.at_most else 'at least'} {self.bound:g}{self.unit}"

    def found(self, results: Results) -> str:
        """The median, with the least and greatest value."""
        values = self.values(results)
        if not values:
            return "-"
        return f"{median(values):.2f}{self.unit} ({min(values):.2f} to {max(values):.2f})"

    def verdict(self, results: Results) -> TargetVerdict:
        """Whether the median is on the right side of the bound."""
        values = self.values(results)
        if not values:
            return TargetVerdict.NOT_MEASURED
        reached = median(values) <= self.bound if self.at_most else median(values) >= self.bound
        return TargetVerdict.REACHED if reached else TargetVerdict.FALLS_SHORT


def rate_ratios(results: Results, way: str, *others: str) -> list[float]:
    """Ratio of records per second of an approach to those of the fastest of others, for each round.

    Only micro-batches count: the start of a query takes the same time for all, and would make ratios closer to 1.
    """
    return _ratios(results, way, others, lambda each: each.trigger_rate, max)


def whole_rate_ratios(results: Results, way: str, *others: str) -> list[float]:
    """The same over whole runs, for others that are no Spark queries: the start of a query counts."""
    return _ratios(results, way, others, lambda each: each.rate, max)


def cpu_ratios(results: Results, way: str, *others: str) -> list[float]:
    """Ratio of CPU seconds per record of an approach to those of the cheapest of others, for each round."""
    return _ratios(results, way, others, lambda each: each.cpu_seconds_per_million, min)


def _ratios(
    results: Results,
    way: str,
    others: Sequence[str],
    figure: Callable[[Measurement], float | None],
    best: Callable[[Sequence[float]], float],
) -> list[float]:
    """Ratio of a figure of an approach to the best one of others, for each round in which both were measured."""
    found: dict[int, list[float]] = {}
    for each in (measurement for other in others for measurement in results.of(other)):
        if (value := figure(each)) is not None:
            found.setdefault(each.round, []).append(value)
    return [
        value / best(found[each.round])
        for each in results.of(way)
        if each.round in found and (value := figure(each)) is not None
    ]


def _fan_out_to(*others: str, tables: int = 30) -> Callable[[Results], Sequence[float]]:
    return lambda results: rate_ratios(results, fan_out_name(tables), *others)


def _during_compaction(results: Results) -> list[float]:
    return rate_ratios(results, DURING_COMPACTION, fan_out_name(30))


def _with_rules(results: Results) -> list[float]:
    return rate_ratios(results, WITH_RULES, fan_out_name(30))


def _commit_seconds(results: Results) -> list[float]:
    return [seconds for each in results.commits for seconds in each.seconds]


def _silver_bytes(results: Results) -> list[float]:
    return [each.game_table_bytes / each.records for each in results.of(fan_out_name(30))]


def _cpu_seconds_per_million(results: Results) -> list[float]:
    return [seconds for each in results.of(fan_out_name(30)) if (seconds := each.cpu_seconds_per_million) is not None]


def _megabytes_per_cpu_second(results: Results) -> list[float]:
    return [rate for each in results.of(LONG_ALONE) if (rate := each.megabytes_per_cpu_second) is not None]


def _freshness(results: Results) -> list[float]:
    return [each.p95 for each in results.freshness]


def _alone_to_consumers(results: Results) -> list[float]:
    return whole_rate_ratios(results, ALONE, DELTA_RS, DUCKDB)


def _alone_to_consumers_1_kb(results: Results) -> list[float]:
    return whole_rate_ratios(results, LONG_ALONE, LONG_DELTA_RS, LONG_DUCKDB)


def _cpu_of_consumers(results: Results) -> list[float]:
    return cpu_ratios(results, ALONE, DELTA_RS, DUCKDB)


def _cpu_of_consumers_1_kb(results: Results) -> list[float]:
    return cpu_ratios(results, LONG_ALONE, LONG_DELTA_RS, LONG_DUCKDB)


@dataclass(frozen=True, slots=True)
class _Steps:
    """A figure with two bounds, the second one harder."""

    text: str
    bounds: tuple[float, float]
    unit: str
    values: Callable[[Results], Sequence[float]]
    at_most: bool = False

    def targets(self) -> tuple[PerformanceTarget, PerformanceTarget]:
        """One target for each step."""
        first, second = (
            PerformanceTarget(f"{self.text}: {step}", bound, self.unit, self.values, self.at_most)
            for step, bound in zip(STEPS, self.bounds, strict=True)
        )
        return first, second


_IN_STEPS = (
    _Steps("fan-out into 30 game tables, of Spark's ceiling", (0.7, 1), "", _fan_out_to(CEILING, CEILING_OF_COLUMNS)),
    _Steps(
        "CPU seconds per million records into 30 game tables, bronze and `silver/events`",
        (5.5, 4),
        " s",
        _cpu_seconds_per_million,
        at_most=True,
    ),
    _Steps("fan-out into 30 game tables, times the textbook", (12, 16), "", _fan_out_to(TEXTBOOK)),
    _Steps("1-KB events, one table, no bronze: MB/s per CPU core", (40, 60), "", _megabytes_per_cpu_second),
    _Steps(
        "freshness: 95 % of the events are younger than this when they can be read",
        (1.2, 0.8),
        " s",
        _freshness,
        at_most=True,
    ),
)

TARGETS: tuple[PerformanceTarget, ...] = (
    *(target for steps in _IN_STEPS for target in steps.targets()),
    PerformanceTarget(
        "one table, no bronze: rate, times the fastest consumer without Spark", 1, "", _alone_to_consumers
    ),
    PerformanceTarget(
        "1-KB events, one table, no bronze: rate, times the fastest consumer without Spark",
        1,
        "",
        _alone_to_consumers_1_kb,
    ),
    PerformanceTarget(
        "one table, no bronze: CPU time, of that of the cheapest consumer without Spark",
        1,
        "",
        _cpu_of_consumers,
        at_most=True,
    ),
    PerformanceTarget(
        "1-KB events, one table, no bronze: CPU time, of that of the cheapest consumer without Spark",
        1,
        "",
        _cpu_of_consumers_1_kb,
        at_most=True,
    ),
    PerformanceTarget("rate into 30 game tables, of the rate into one", 0.75, "", _fan_out_to(fan_out_name(1))),
    PerformanceTarget(
        "rate into 100 game tables, of the rate into one", 0.6, "", _fan_out_to(fan_out_name(1), tables=100)
    ),
    PerformanceTarget("rate with the dedup window, of the rate without", 0.75, "", _fan_out_to(NO_DEDUP)),
    PerformanceTarget(
        "rate with the dedup window, times that with Spark's own deduplication", 1, "", _fan_out_to(DEDUP_BY_SPARK)
    ),
    PerformanceTarget("rate during compaction of small files, of the rate without", 0.85, "", _during_compaction),
    PerformanceTarget("rate with 20 rules for each game's rows, of the rate without", 0.85, "", _with_rules),
    PerformanceTarget("32 idempotent commits together", 0.4, " s", _commit_seconds, at_most=True),
    PerformanceTarget("bytes per event in the game tables", 60, "", _silver_bytes, at_most=True),
)
