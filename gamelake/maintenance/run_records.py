"""What is known of the runs of each round, kept in the lakehouse: it outlives the process, and any other can see it."""

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Self

import msgspec

from gamelake.storage.store import Store

log = logging.getLogger(__name__)


class WorkDone(msgspec.Struct, frozen=True, kw_only=True):
    """What runs have done: files that became fewer, and files that were deleted."""

    packed_files: int = 0
    packed_bytes: int = 0
    freed_files: int = 0
    freed_bytes: int = 0

    def plus(self, other: Self) -> "WorkDone":
        """Both together."""
        return WorkDone(
            packed_files=self.packed_files + other.packed_files,
            packed_bytes=self.packed_bytes + other.packed_bytes,
            freed_files=self.freed_files + other.freed_files,
            freed_bytes=self.freed_bytes + other.freed_bytes,
        )


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One round's runs.

    Attributes:
        known_since: when the schedule was first seen to have it; a round has its first turn after that.
        failures: runs in a row that did not succeed; one that has begun counts until it has.
        done: what all runs together have done.
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
        """The last that is known of it."""
        return max(filter(None, (self.begun_at, self.ended_at, self.known_since)))

    @property
    def failures_so_far(self) -> int:
        """Runs in a row that failed, without one that may be running."""
        return self.failures - self.is_open

    def begun(self, now: datetime) -> "TaskRecord":
        """A run begins; one that is still open was killed."""
        return msgspec.structs.replace(
            self, begun_at=now, failures=self.failures + 1, runs_failed=self.runs_failed + self.is_open
        )

    def succeeded(self, now: datetime, done: WorkDone) -> "TaskRecord":
        """The run that began has ended well."""
        ended = self._ended(now, done)
        return msgspec.structs.replace(ended, succeeded_at=now, failures=0, runs_ok=self.runs_ok + 1)

    def failed(self, now: datetime, done: WorkDone) -> "TaskRecord":
        """The run that began has failed, whatever it did before."""
        return msgspec.structs.replace(self._ended(now, done), runs_failed=self.runs_failed + 1)

    def _ended(self, now: datetime, done: WorkDone) -> "TaskRecord":
        seconds = (now - (self.begun_at or now)).total_seconds()
        return msgspec.structs.replace(self, ended_at=now, seconds=seconds, done=self.done.plus(done))


class TaskRecords:
    """The records of all rounds of a lakehouse."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, name: str, now: datetime) -> TaskRecord:
        """A round's record; of one that has none, one that begins now."""
        content, new = self._store.get(_path(name)), TaskRecord(known_since=now)
        try:
            return msgspec.json.decode(content, type=TaskRecord) if content is not None else new
        except msgspec.DecodeError as error:
            log.warning("%s can't be read (%s): the round %s is taken for new", _path(name), error, name)
            return new

    def begin(self, names: Iterable[str], now: datetime) -> None:
        """See that each round has a record, so that its turns are counted from now on."""
        for name in names:
            self._store.put_new(_path(name), msgspec.json.encode(TaskRecord(known_since=now)))

    def keep(self, name: str, record: TaskRecord) -> None:
        """Write a record in the place of the one before; for who holds the rounds' lease."""
        self._store.put(_path(name), msgspec.json.encode(record))


def _path(name: str) -> str:
    return f"_gamelake/upkeep/rounds/{name}.json"
