"""The figures of the year by its tenths, and the bounds that they must keep."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from benchmarks.tenths import rise
from benchmarks.year.plan import YearPlan
from benchmarks.year.simulation import StoredKind, YearSamples
from benchmarks.year.stream import BatchSample
from benchmarks.year.tasks import TaskSample

# The first tenths are warm-up: until then the retention has deleted nothing.
_STEADY_FROM = 2
_MILLISECONDS, _MIB, _KIB = 1_000.0, 2**20, 2**10
LIVE_FILES = "live files of past days"
# Two tenths have a rise, but it may be chance.
_LEAST_TENTHS = 3


class TaskRunFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a task in a tenth: their number, medians of a run, and the most memory and listed objects of one."""

    runs: int
    seconds: float
    cpu_seconds: float
    grown_mib: float
    listed: float


class TenthFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A tenth of the year: medians of a batch (CPU and listed: means), its tasks, and the lakehouse at its end."""

    batches: int
    decide_ms: float
    commit_ms: float
    cpu_ms: float
    listed: float
    driver_mib: float
    tasks: dict[str, TaskRunFigures]
    kinds: dict[str, StoredKind]
    live_files: int


class YearFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run.

    Attributes:
        seconds: that it took.
        rises: of each figure that has a bound, from the third tenth to the last, in per cent of its mean.
        failed: runs of tasks, in a sentence each.
    """

    measured_at: str
    commit: str
    cores: int
    cpu_model: str
    seconds: float
    batches: int
    tables: int
    days: float
    retention_days: float
    tenths: tuple[TenthFigures, ...]
    rises: dict[str, float]
    failed: tuple[str, ...]


def of_tenths(samples: YearSamples, plan: YearPlan) -> tuple[TenthFigures, ...]:
    """The figures of each tenth."""
    begins, ends = [0, *plan.ends[:-1]], plan.ends
    return tuple(
        _of_tenth(
            samples.batches[begin:end],
            [each for each in samples.tasks if begin < each.batch <= end],
            inventory.kinds,
            inventory.live_files,
        )
        for begin, end, inventory in zip(begins, ends, samples.inventories, strict=True)
    )


def _of_tenth(
    batches: Sequence[BatchSample], runs: Sequence[TaskSample], kinds: dict[str, StoredKind], live_files: int
) -> TenthFigures:
    names = dict.fromkeys(each.task for each in runs)
    return TenthFigures(
        batches=len(batches),
        decide_ms=_median([each.decide_seconds for each in batches]) * _MILLISECONDS,
        commit_ms=_median([each.commit_seconds for each in batches]) * _MILLISECONDS,
        cpu_ms=float(np.mean([each.cpu_seconds for each in batches])) * _MILLISECONDS,
        listed=float(np.mean([each.listed for each in batches])),
        driver_mib=_median([each.memory for each in batches]) / _MIB,
        tasks={name: _of_task([each for each in runs if each.task == name]) for name in names},
        kinds=kinds,
        live_files=live_files,
    )


def _of_task(runs: Sequence[TaskSample]) -> TaskRunFigures:
    return TaskRunFigures(
        runs=len(runs),
        seconds=_median([each.seconds for each in runs]),
        cpu_seconds=_median([each.cpu_seconds for each in runs]),
        grown_mib=max(each.grown_kib for each in runs) / _KIB,
        listed=max(each.listed for each in runs),
    )


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))


@dataclass(frozen=True, slots=True)
class GrowthBound:
    """How much a figure may rise from the third tenth to the last.

    Attributes:
        figure: its name in results.
        of: gives it of a tenth; None where the tenth has none.
        most: per cent of the figure's mean.
        with_live_files: it may also rise as the tables' live files do.
    """

    figure: str
    of: Callable[[TenthFigures], float | None]
    most: float
    with_live_files: bool = False

    def rise(self, tenths: Sequence[TenthFigures]) -> float | None:
        """The rise in per cent; None if too few tenths have the figure."""
        values = [value for each in tenths[_STEADY_FROM:] if (value := self.of(each)) is not None]
        return rise(values) if len(values) >= _LEAST_TENTHS else None

    def allowed(self, rises: Mapping[str, float]) -> float:
        """The rise that it may have, by the rise of the live files among all rises."""
        return self.most + (rises.get(LIVE_FILES, 0.0) if self.with_live_files else 0.0)

    def is_kept(self, rises: Mapping[str, float]) -> bool:
        """Whether the figure kept the bound, or has no rise."""
        return rises.get(self.figure, 0.0) <= self.allowed(rises)


def rises_of(bounds: Sequence[GrowthBound], tenths: Sequence[TenthFigures]) -> dict[str, float]:
    """The rise of the live files, and of each figure that has one."""
    live = GrowthBound(LIVE_FILES, lambda tenth: tenth.live_files, 0.0)
    found = {each.figure: each.rise(tenths) for each in (live, *bounds)}
    return {name: round(value, 1) for name, value in found.items() if value is not None}
