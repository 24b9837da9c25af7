"""The plan of the simulated year: its length, its retentions, and a clock whose days last seconds."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.harness import option
from benchmarks.tenths import TENTHS
from gamelake.contract.schedule import ScheduledTask, load_schedule
from gamelake.maintenance.log_cleanup import KEPT_MANIFESTS

FULL_YEAR, _FULL_DAYS = 18_200, 364
BEGINNING = datetime(2025, 1, 1, tzinfo=UTC)
_RETENTION, _TOMBSTONES, _WINDOW = timedelta(days=14), timedelta(days=7), timedelta(hours=6)
# Landing files have a bucket of their own.
_LEFT_OUT = ("reconcile_files",)
# In production it runs after hundreds of batches; so often it would find nothing to do.
_HOT = "every 60 hours"
# What no schedule has, but each lakehouse needs.
_UNSCHEDULED = (
    ScheduledTask(name="start", when="weekly on wednesday at 12:00", job="start"),
    ScheduledTask(name="verify", when="weekly on wednesday at 13:00", job="verify"),
    ScheduledTask(name="measure_tables", when="weekly on wednesday at 14:00", job="measure_tables"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class YearPlan:
    """The length of the simulated time, in batches; retentions of a shorter one are shorter in proportion."""

    batches: int = option(FULL_YEAR, "batches; a year has the default")
    tables: int = option(33, "at least 3")
    batches_per_day: int = option(50, "batches of a simulated day")

    @property
    def days(self) -> float:
        """The length in days."""
        return self.batches / self.batches_per_day

    @property
    def ends(self) -> list[int]:
        """The number of batches at the end of each tenth: at the end of a day, as cleanup runs once a day."""
        step = self.batches_per_day if self.days >= TENTHS else 1
        return [
            *(round((tenth + 1) * self.batches / TENTHS / step) * step for tenth in range(TENTHS - 1)),
            self.batches,
        ]

    @property
    def _share(self) -> float:
        return min(1.0, self.days / _FULL_DAYS)

    @property
    def retention(self) -> timedelta:
        """The time for which history is kept."""
        return _RETENTION * self._share

    @property
    def tombstones(self) -> timedelta:
        """The time for which Delta's checkpoints keep removed files; Delta's default is a week."""
        return _TOMBSTONES * self._share

    @property
    def window(self) -> timedelta:
        """The deduplication window: some batches."""
        return _WINDOW

    @property
    def keep_manifests(self) -> int:
        """The number of manifests that log cleanup keeps, however old they are."""
        return max(1, round(KEPT_MANIFESTS * self.batches / FULL_YEAR))

    def tasks(self, schedule: Path) -> list[ScheduledTask]:
        """The tasks of the platform's schedule, and those that no schedule has: starts and reconciliations."""
        listed = [each for each in load_schedule(schedule).tasks if each.name not in _LEFT_OUT]
        return [*(_less_often(each) for each in listed), *_UNSCHEDULED]


def _less_often(task: ScheduledTask) -> ScheduledTask:
    if task.name != "compact_hot":
        return task
    return ScheduledTask(name=task.name, when=_HOT, job=task.job, arguments=task.arguments)


@dataclass(slots=True)
class SimulatedClock:
    """A clock that each batch moves on; it knows when its moments were by the real clock.

    Logs, manifests and objects have real times. So a retention of simulated days deletes what is older than the real
    moment at which these days began, and nothing of the platform needs another clock.
    """

    plan: YearPlan
    _begun: list[datetime] = field(default_factory=list)

    def next_batch(self) -> None:
        """Move on by one batch."""
        self._begun.append(datetime.now(UTC))

    def now(self) -> datetime:
        """The simulated moment."""
        return BEGINNING + max(len(self._begun) - 1, 0) * self._step

    def real(self, moment: datetime) -> datetime:
        """When a simulated moment of the past was; of moments before the beginning: when that was."""
        number = -((BEGINNING - moment) // self._step)  # rounded up: the first batch that is not before
        return self._begun[min(max(number, 0), len(self._begun) - 1)]

    @property
    def _step(self) -> timedelta:
        return timedelta(days=1) / self.plan.batches_per_day
