"""The records of tasks' runs: one object in the lakehouse for each task, which outlives the scheduler."""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

import msgspec

from gamelake.model.logs import event_logger
from gamelake.model.naming import MAINTENANCE_FOLDER
from gamelake.objects.records import Records
from gamelake.objects.store import Store

log = event_logger(__name__)


class WorkDone(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one or more runs.

    Attributes:
        compacted_files: number of files that compaction replaced.
        compacted_bytes: size of these files.
        deleted_files: number of files that vacuum and log cleanup deleted.
        deleted_bytes: size of these files.
    """

    compacted_files: int = 0
    compacted_bytes: int = 0
    deleted_files: int = 0
    deleted_bytes: int = 0

    def plus(self, other: Self) -> "WorkDone":
        """Return the sum of both."""
        return WorkDone(
            compacted_files=self.compacted_files + other.compacted_files,
            compacted_bytes=self.compacted_bytes + other.compacted_bytes,
            deleted_files=self.deleted_files + other.deleted_files,
            deleted_bytes=self.deleted_bytes + other.deleted_bytes,
        )


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one task.

    Attributes:
        known_since: when the schedule first listed the task; its first run is due after that.
        begun_at: start of the last run; None before the first one.
        ended_at: end of the last run that ended; None before.
        succeeded_at: end of the last run that succeeded; None before.
        failures: number of consecutive runs without success; a run counts from its beginning until it has succeeded.
        runs_ok: number of runs that succeeded.
        runs_failed: number of runs that failed or were killed.
        seconds: duration of the last run that ended.
        done: the work of all runs.
    """

    known_since: datetime
    begun_at: datetime | None = None
    ended_at: datetime | None = None
    succeeded_at: datetime | None = None
    failures: int = 0
    runs_ok: int = 0
    runs_failed: int = 0
    seconds: float = 0.0
    done: WorkDone = WorkDone()

    @property
    def is_open(self) -> bool:
        """True if a run has begun but not ended: it still runs, or was killed."""
        return self.begun_at is not None and (self.ended_at is None or self.ended_at < self.begun_at)

    @property
    def last_moment(self) -> datetime:
        """The time of the last change: a run's beginning or end, or the start of the record."""
        return max(filter(None, (self.begun_at, self.ended_at, self.known_since)))

    @property
    def failures_so_far(self) -> int:
        """Consecutive failed runs, not counting one that may be running."""
        return self.failures - self.is_open

    def begun(self, now: datetime) -> "TaskRecord":
        """Return the record after a run has begun; an earlier run that is still open was killed: it has failed."""
        return msgspec.structs.replace(
            self, begun_at=now, failures=self.failures + 1, runs_failed=self.runs_failed + self.is_open
        )

    def succeeded(self, now: datetime, done: WorkDone) -> "TaskRecord":
        """Return the record after the open run has succeeded."""
        ended = self._ended(now, done)
        return msgspec.structs.replace(ended, succeeded_at=now, failures=0, runs_ok=self.runs_ok + 1)

    def failed(self, now: datetime, done: WorkDone) -> "TaskRecord":
        """Return the record after the open run has failed; the work that it did before counts."""
        return msgspec.structs.replace(self._ended(now, done), runs_failed=self.runs_failed + 1)

    def _ended(self, now: datetime, done: WorkDone) -> "TaskRecord":
        # If the clock was set to an earlier time during the run, the run would count as still running.
        ended_at = max(now, self.begun_at or now)
        seconds = (ended_at - (self.begun_at or now)).total_seconds()
        return msgspec.structs.replace(self, ended_at=ended_at, seconds=seconds, done=self.done.plus(done))


class TaskRecords:
    """The records of all tasks of a lakehouse."""

    def __init__(self, store: Store) -> None:
        self._records = Records(store, f"{MAINTENANCE_FOLDER}/tasks", TaskRecord)

    def of(self, name: str, now: datetime) -> TaskRecord:
        """Read the record of a task; return a new one if the task has none, or an unreadable one."""
        new = TaskRecord(known_since=now)
        try:
            return self._records.read(name) or new
        except msgspec.DecodeError as error:
            path, action = self._records.path(name), "the task starts with a new record"
            log.warning("task_record_unreadable", task=name, path=path, error=error, action=action)
            return new

    def begin(self, names: Iterable[str], now: datetime) -> None:
        """Write a new record for each task that has none, so that its runs are due from now on."""
        for name in names:
            self._records.add(name, TaskRecord(known_since=now))

    def keep(self, name: str, record: TaskRecord) -> None:
        """Replace the record of a task; the caller must hold the scheduler's lease."""
        self._records.put(name, record)
