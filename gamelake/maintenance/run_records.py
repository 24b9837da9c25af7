"""The record of each task's runs, an object in the lakehouse that outlives the scheduler."""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

import msgspec

from gamelake.model.logs import event_logger
from gamelake.storage.store import Store

log = event_logger(__name__)


# The keys of stored records by the names of the fields.
_STORED_KEYS = {
    "compacted_files": "packed_files",
    "compacted_bytes": "packed_bytes",
    "deleted_files": "freed_files",
    "deleted_bytes": "freed_bytes",
}


class WorkDone(msgspec.Struct, frozen=True, kw_only=True, rename=_STORED_KEYS):
    """What runs have done: compacted files and deleted files; sizes in bytes."""

    compacted_files: int = 0
    compacted_bytes: int = 0
    deleted_files: int = 0
    deleted_bytes: int = 0

    def plus(self, other: Self) -> "WorkDone":
        """The sum of both."""
        return WorkDone(
            compacted_files=self.compacted_files + other.compacted_files,
            compacted_bytes=self.compacted_bytes + other.compacted_bytes,
            deleted_files=self.deleted_files + other.deleted_files,
            deleted_bytes=self.deleted_bytes + other.deleted_bytes,
        )


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one task.

    Attributes:
        known_since: when the schedule first listed it; its first run is due after that.
        failures: consecutive runs without success; a run that has begun counts until it has succeeded.
        done: the sum over all runs.
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
        """Whether a run has begun and not ended: it runs, or was killed."""
        return self.begun_at is not None and (self.ended_at is None or self.ended_at < self.begun_at)

    @property
    def last_moment(self) -> datetime:
        """The moment of its last event."""
        return max(filter(None, (self.begun_at, self.ended_at, self.known_since)))

    @property
    def failures_so_far(self) -> int:
        """Consecutive failed runs, not counting one that may be running."""
        return self.failures - self.is_open

    def begun(self, now: datetime) -> "TaskRecord":
        """A run begins; an earlier one that is still open was killed."""
        return msgspec.structs.replace(
            self, begun_at=now, failures=self.failures + 1, runs_failed=self.runs_failed + self.is_open
        )

    def succeeded(self, now: datetime, done: WorkDone) -> "TaskRecord":
        """The run has succeeded."""
        ended = self._ended(now, done)
        return msgspec.structs.replace(ended, succeeded_at=now, failures=0, runs_ok=self.runs_ok + 1)

    def failed(self, now: datetime, done: WorkDone) -> "TaskRecord":
        """The run has failed; what it did before counts."""
        return msgspec.structs.replace(self._ended(now, done), runs_failed=self.runs_failed + 1)

    def _ended(self, now: datetime, done: WorkDone) -> "TaskRecord":
        # The clock may have gone back during the run, which would then count as one that goes on.
        ended_at = max(now, self.begun_at or now)
        seconds = (ended_at - (self.begun_at or now)).total_seconds()
        return msgspec.structs.replace(self, ended_at=ended_at, seconds=seconds, done=self.done.plus(done))


class TaskRecords:
    """The records of all tasks of a lakehouse."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, name: str, now: datetime) -> TaskRecord:
        """The record of a task; a new one if it has none, or an unreadable one."""
        content, new = self._store.get(_path(name)), TaskRecord(known_since=now)
        try:
            return msgspec.json.decode(content, type=TaskRecord) if content is not None else new
        except msgspec.DecodeError as error:
            log.warning(
                "task_record_unreadable",
                task=name,
                path=_path(name),
                error=error,
                action="the task starts with a new record",
            )
            return new

    def begin(self, names: Iterable[str], now: datetime) -> None:
        """Give each task without a record a new one, so that its runs are due from now on."""
        for name in names:
            self._store.put_new(_path(name), msgspec.json.encode(TaskRecord(known_since=now)))

    def keep(self, name: str, record: TaskRecord) -> None:
        """Replace the record of a task; the caller must hold the scheduler's lease."""
        self._store.put(_path(name), msgspec.json.encode(record))


def _path(name: str) -> str:
    return f"_gamelake/upkeep/rounds/{name}.json"
