"""Performance targets: figures, the bounds that they must reach, and their values in a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from benchmarks.approaches import (
    CEILING,
    CEILING_OF_COLUMNS,
    DEDUP_BY_SPARK,
    DURING_COMPACTION,
    NO_DEDUP,
    TEXTBOOK,
    WITH_RULES,
    fan_out_name,
)
from benchmarks.results import Results


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
    fastest: dict[int, float] = {}
    for each in (found for other in others for found in results.of(other)):
        fastest[each.round] = max(each.trigger_rate, fastest.get(each.round, 0))
    return [each.trigger_rate / fastest[each.round] for each in results.of(way) if each.round in fastest]


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


TARGETS: tuple[PerformanceTarget, ...] = (
    PerformanceTarget(
        "fan-out into 30 game tables, of Spark's ceiling: first step", 0.4, "", _fan_out_to(CEILING, CEILING_OF_COLUMNS)
    ),
    PerformanceTarget(
        "fan-out into 30 game tables, of Spark's ceiling: second step",
        0.5,
        "",
        _fan_out_to(CEILING, CEILING_OF_COLUMNS),
    ),
    PerformanceTarget("fan-out into 30 game tables, times the textbook", 5, "", _fan_out_to(TEXTBOOK)),
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
    PerformanceTarget(
        "freshness: 95 % of the events are younger than this when they can be read",
        2.5,
        " s",
        lambda results: [each.p95 for each in results.freshness],
        at_most=True,
    ),
)
