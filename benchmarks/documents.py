"""Writes results into docs/performance.md, its appendix and the charts: tables between the "measured" comments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TypeAlias

from benchmarks.goals import Goal, number, spread
from benchmarks.results import Results

# In `docs/`: the page has the figures with their goals, the appendix has the measurements behind them.
PAGE, APPENDIX = Path("performance.md"), Path("appendix/performance.md")
_COMPONENTS = {
    "pyspark": "Spark",
    "java": "Java",
    "delta": "Delta",
    "deltalake": "delta-rs",
    "ptars": "ptars",
    "kafka": "Kafka",
}

Section: TypeAlias = Callable[[Results], str]
Chart: TypeAlias = Callable[[Results, Path], None]


class MarkersMissingError(Exception):
    """The document has no markers for the figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The sections of the page and of its appendix, and the charts by file name."""

    page: Sequence[Section] = ()
    appendix: Sequence[Section] = ()
    charts: Mapping[str, Chart] = field(default_factory=dict)

    def write(self, results: Results, docs: Path) -> None:
        """Write the sections between the comments `measured: <benchmark>: begin` and `end`, and draw the charts.

        Raises:
            MarkersMissingError: a document has no such comments.
        """
        for document, sections in ((docs / PAGE, self.page), (docs / APPENDIX, self.appendix)):
            if sections:
                put_between_markers(document, results.benchmark, [section(results) for section in sections])
        for name, draw in self.charts.items():
            draw(results, docs / name)


def put_between_markers(document: Path, name: str, parts: Sequence[str]) -> None:
    """Replace the text between two comments of a document.

    Raises:
        MarkersMissingError: the document has no such comments.
    """
    first, last = (f"<!-- measured: {name}: {edge} -->" for edge in ("begin", "end"))
    before, begin, rest = document.read_text(encoding="utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise MarkersMissingError(f"{document} lacks the lines {first} and {last}")
    measured = "\n\n".join(parts)
    document.write_text(f"{before}{first}\n\n{measured}\n\n{last}{after}", encoding="utf-8")


def circumstances(where: str) -> Section:
    """Return the section that says when, where and how the benchmark ran."""

    def text(results: Results) -> str:
        machine = results.machine
        memory = f" with {machine.memory_bytes / 2**30:.0f} GiB" if machine.memory_bytes else ""
        settings = ", ".join(f"{name.replace('_', ' ')} {_setting(value)}" for name, value in results.settings.items())
        versions = ", ".join(
            f"{label} {machine.versions[name]}" for name, label in _COMPONENTS.items() if name in machine.versions
        )
        sentences = [
            f"Measured on {results.measured_at[:10]} at commit `{results.commit}`, on {machine.cores} cores "
            f"({machine.cpu_model}){memory}; {where}.",
            f"Settings: {settings}.",
            f"{versions}." if versions else "",
            _others(results),
        ]
        return " ".join(filter(None, sentences))

    return text


def _setting(value: object) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_setting, value)) or "-"
    return number(value) if isinstance(value, int | float) else str(value) or "-"


def _others(results: Results) -> str:
    """The share of the cores that other processes used during the measurements."""
    laps = [each.values for each in results.samples if {"s", "other CPU s"} <= each.values.keys()]
    if not laps:
        return ""
    share = sum(lap["other CPU s"] for lap in laps) / sum(lap["s"] for lap in laps) / results.machine.cores
    return f"Other processes used {share:.1%} of the cores meanwhile."


def goals_table(goals: Sequence[Goal]) -> Section:
    """Return the section with each goal, the measured figure and the verdict."""
    head = ["figure", "goal", "measured: median (least to greatest)", "verdict"]
    return lambda results: table(
        head, [[goal.text, goal.bounds_text, goal.found(results), goal.verdict(results)] for goal in goals]
    )


def subjects_table(part: str, title: str, *figures: str) -> Section:
    """Return the section with a row for each subject of a part, and a column for each figure.

    Args:
        part: of the results.
        title: of the column of subjects.
        figures: their names; without any, all figures of the part. The first one has its least and greatest value, the
            others only have a median.
    """

    def text(results: Results) -> str:
        first, *others = figures or results.figures(part)
        rows = [
            [
                subject,
                spread(results.values(part, subject, first)),
                *(number(median(found)) if (found := results.values(part, subject, name)) else "" for name in others),
            ]
            for subject in results.subjects(part)
        ]
        return table([title, f"{first}: median (least to greatest)", *others], rows)

    return text


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))
