"""The figures of the year by its tenths, which are the rounds of its results, and the bounds that they must keep."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.charts import line_chart
from benchmarks.goals import Figure, Goal
from benchmarks.results import MIB, Measurement, Results, Values
from benchmarks.tenths import rise
from benchmarks.year.plan import YearPlan
from benchmarks.year.simulation import Inventory, YearSamples
from benchmarks.year.stream import BatchSample
from benchmarks.year.tasks import TaskSample

YEAR = "year"
BATCH, STORED, LIVE_FILES = "batch", "stored", "live files of past days"
LISTED, CPU_S, MEMORY = "objects listed", "CPU s", "memory MiB"
_TASKS = ("start", "compact_daily", "vacuum", "clean_logs", "verify", "measure_tables")
# All others of these list no data.
_LISTS_FILES = ("vacuum", "clean_logs")
# The first tenths are warm-up: until then the retention has deleted nothing. A rise over 2 tenths may be chance.
_STEADY_FROM, _LEAST_TENTHS = 3, 3
_KIB = 2**10


def samples_of(samples: YearSamples, plan: YearPlan) -> Iterator[Measurement]:
    """Yield the figures of each tenth: medians of a batch and of a task's runs, and the lakehouse at its end."""
    begins, ends = [0, *plan.ends[:-1]], plan.ends
    for number, (begin, end, inventory) in enumerate(zip(begins, ends, samples.inventories, strict=True), start=1):
        runs = [each for each in samples.tasks if begin < each.batch <= end]
        subjects: dict[str, Values] = {BATCH: _of_batches(samples.batches[begin:end])}
        for task in dict.fromkeys(each.task for each in runs):
            subjects[task] = _of_task([each for each in runs if each.task == task])
        subjects |= _of_inventory(inventory)
        for subject, values in subjects.items():
            rounded = {name: round(value, 4) for name, value in values.items()}
            yield Measurement(part=YEAR, subject=subject, round=number, values=rounded)


def _of_batches(batches: Sequence[BatchSample]) -> Values:
    return {
        "decision ms": 1_000 * _median([each.decide_seconds for each in batches]),
        "commits ms": 1_000 * _median([each.commit_seconds for each in batches]),
        "CPU ms": 1_000 * float(np.mean([each.cpu_seconds for each in batches])),
        LISTED: float(np.mean([each.listed for each in batches])),
        MEMORY: _median([each.memory for each in batches]) / MIB,
    }


def _of_task(runs: Sequence[TaskSample]) -> Values:
    """Medians of a run, and the most memory and listed objects of one."""
    return {
        "s": _median([each.seconds for each in runs]),
        CPU_S: _median([each.cpu_seconds for each in runs]),
        MEMORY: max(each.grown_kib for each in runs) / _KIB,
        LISTED: max(each.listed for each in runs),
    }


def _of_inventory(inventory: Inventory) -> Mapping[str, Values]:
    kinds: dict[str, Values] = {
        kind: {"objects": each.objects, "MiB": each.bytes / MIB} for kind, each in inventory.kinds.items()
    }
    return kinds | {LIVE_FILES: {"files": inventory.live_files}}


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))


def rise_of(subject: str, figure: str, *, beyond_live_files: bool = False) -> Figure:
    """Return a function for the rise from the third tenth to the last, in per cent of the mean.

    Args:
        subject: of the figure.
        figure: its name.
        beyond_live_files: subtracts the rise of the live files; the figure may rise as they do.
    """

    def values(results: Results) -> list[float]:
        steady = [each for each in results.of(YEAR, subject) if each.round >= _STEADY_FROM and figure in each.values]
        if len(steady) < _LEAST_TENTHS:
            return []
        allowed = rise_of(LIVE_FILES, "files")(results) if beyond_live_files else []
        return [round(rise([each.values[figure] for each in steady]) - sum(allowed), 1)]

    return values


def _goal(subject: str, figure: str, most: float, *, with_live_files: bool = False) -> Goal:
    text = f"{subject}: rise of {figure}{' beyond that of live files' if with_live_files else ''}"
    return Goal(text, (most,), rise_of(subject, figure, beyond_live_files=with_live_files), " %", at_most=True)


# Times are CPU times: other processes of the machine change them less.
GOALS = (
    _goal(BATCH, "CPU ms", 20),
    _goal(BATCH, LISTED, 2),
    _goal(BATCH, MEMORY, 10),
    # Each reads the live files of all tables.
    *(_goal(task, CPU_S, 10, with_live_files=True) for task in _TASKS),
    *(_goal(task, MEMORY, 25) for task in _TASKS),
    *(_goal(task, LISTED, 10, with_live_files=task in _LISTS_FILES) for task in _TASKS),
    *(_goal(kind, "objects", 10) for kind in ("log entries", "manifests", "other")),
    _goal("compacted history", "objects", 0),
    _goal("compacted history", "MiB", 10, with_live_files=True),
)


def kept(results: Results) -> str:
    """Return how many figures stay within their bounds, and which ones don't."""
    measured = [goal for goal in GOALS if goal.values(results)]
    above = [goal.text for goal in measured if not goal.is_reached(results)]
    text = f"{len(measured) - len(above)} of {len(measured)} figures stay within their bound"
    return f"{text}. Above it: {', '.join(above)}." if above else f"{text}."


def draw(results: Results, file: Path) -> None:
    """Draw each figure as a multiple of its third tenth."""
    shown = {
        "decision and commits of a batch": (BATCH, "CPU ms"),
        "memory of the driver": (BATCH, MEMORY),
        **{task: (task, CPU_S) for task in _TASKS},
        LIVE_FILES: (LIVE_FILES, "files"),
    }
    lines = {}
    for name, (subject, figure) in shown.items():
        points = {each.round: each.values[figure] for each in results.of(YEAR, subject)}
        base = next((value for tenth, value in points.items() if tenth >= _STEADY_FROM), 0.0)
        if base:
            lines[name] = {float(tenth): value / base for tenth, value in points.items()}
    line_chart(file, "A year of batches", ("tenth of the year", "times the third tenth"), lines, "linear")
