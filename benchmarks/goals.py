"""Goals: figures of a benchmark, and the bounds that they must reach."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import TypeAlias

from benchmarks.results import Results

# A goal may have two bounds; the second one is harder.
STEPS = ("first step", "second step")
Figure: TypeAlias = Callable[[Results], Sequence[float]]


class GoalVerdict(StrEnum):
    """The verdict on a figure and its bound."""

    REACHED = "reached"
    FALLS_SHORT = "**falls short**"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure with one or two bounds; its median must be at least a bound, or at most with `at_most`."""

    text: str
    bounds: tuple[float, ...]
    values: Figure
    unit: str = ""
    at_most: bool = False

    @property
    def bounds_text(self) -> str:
        """The bounds as text."""
        bounds = ", then ".join(f"{bound:,g}{self.unit}" for bound in self.bounds)
        return f"{'at most' if self.at_most else 'at least'} {bounds}"

    def found(self, results: Results) -> str:
        """Return the median, with the least and greatest value."""
        return spread(self.values(results), self.unit) or "-"

    def is_reached(self, results: Results) -> bool:
        """Return False if the figure was measured and misses a bound."""
        return GoalVerdict.FALLS_SHORT not in self.verdict(results)

    def verdict(self, results: Results) -> str:
        """Return the verdict on each bound, or one verdict if all are the same."""
        values = self.values(results)
        if not values:
            return GoalVerdict.NOT_MEASURED
        middle = median(values)
        reached = [middle <= bound if self.at_most else middle >= bound for bound in self.bounds]
        verdicts = [GoalVerdict.REACHED if each else GoalVerdict.FALLS_SHORT for each in reached]
        if len(set(verdicts)) == 1:
            return verdicts[0]
        return ", ".join(f"{step} {verdict}" for step, verdict in zip(STEPS, verdicts, strict=True))


def figure_of(part: str, subject: str, figure: str) -> Figure:
    """Return a function that reads a figure of a subject, one value for each round."""
    return lambda results: results.values(part, subject, figure)


def ratio(part: str, figure: str, subject: str, *others: str, least: bool = False) -> Figure:
    """Return a function that divides a subject's figure by the greatest (or least) one of others, round by round."""

    def ratios(results: Results) -> list[float]:
        found: dict[int, list[float]] = {}
        for other in others:
            for sample in results.of(part, other):
                if figure in sample.values:
                    found.setdefault(sample.round, []).append(sample.values[figure])
        best = min if least else max
        return [
            sample.values[figure] / best(found[sample.round])
            for sample in results.of(part, subject)
            if sample.round in found and figure in sample.values
        ]

    return ratios


def spread(values: Sequence[float], unit: str = "") -> str:
    """Return the median, with the least and greatest of several values; "" of none."""
    if not values:
        return ""
    middle = f"{number(median(values))}{unit}"
    return middle if len(values) == 1 else f"{middle} ({number(min(values))} to {number(max(values))})"


def number(value: float) -> str:
    """Return a number with the digits that matter: two after the point, one from 100 on, none from 1,000 on."""
    value = round(value, 2) or 0.0  # never -0.0
    if float(value).is_integer() or abs(value) >= 1_000:  # noqa: PLR2004 # see above
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"  # noqa: PLR2004 # see above
