"""Runs a round's program to its end, and reads from what it printed what it has done.

A process of its own gives its memory back, can be ended, and takes nobody with it when it dies.
"""

import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from threading import Event
from typing import Any

import msgspec

from gamelake.maintenance.run_records import WorkDone
from gamelake.model.schedule import ScheduledTask

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
# After SIGTERM; then SIGKILL. Whatever a round was at, the next one finds it whole.
_LAST_SECONDS = 5.0


class RunOutcome(StrEnum):
    """How a run ended; also the metric's label."""

    OK = "ok"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """A run that is over: what it did and printed, and why it failed, empty if it didn't."""

    done: WorkDone
    seconds: float
    problem: str = ""
    printed: bytes = b""

    @property
    def outcome(self) -> RunOutcome:
        """How it ended."""
        return RunOutcome.FAILED if self.problem else RunOutcome.OK


class _Part(msgspec.Struct, frozen=True):
    """What a job says of one table: of compaction the first two, of vacuum and clean-ups the others."""

    files_before: int = 0
    bytes_before: int = 0
    replaced_files: int = 0
    orphaned_files: int = 0
    deleted_files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class ProgramRunner:
    """Runs rounds as `python -m jobs.<job>`.

    Attributes:
        grace: how long a run may go on once it is to stop.
        heartbeat: called again and again while a run goes on.
    """

    grace: timedelta
    heartbeat: Callable[[], None] = lambda: None

    def run(self, scheduled: ScheduledTask, stop: Event) -> ProgramRun:
        """Run a round's program until it ends, takes too long, or is to stop and doesn't within the grace."""
        command = [sys.executable, "-m", f"jobs.{scheduled.job}", *scheduled.arguments]
        started = time.monotonic()
        with tempfile.TemporaryFile() as printed:
            # In a session of its own it does not hear the Ctrl-C that asks us to let it end.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=printed, start_new_session=True)  # noqa: S603 # the schedule is a contract of ours
            problem = self._watched(process, scheduled, stop)
            printed.seek(0)
            said = printed.read()
            return ProgramRun(done_by(said), time.monotonic() - started, problem, said)

    def _watched(self, process: "subprocess.Popen[bytes]", scheduled: ScheduledTask, stop: Event) -> str:
        """Wait for the end; gives why it is none that was hoped for."""
        latest = time.monotonic() + scheduled.at_most.total_seconds()
        asked = False
        while (code := _ended(process)) is None:
            self.heartbeat()
            if stop.is_set() and not asked:
                asked, latest = True, min(latest, time.monotonic() + self.grace.total_seconds())
            if time.monotonic() >= latest:
                _end(process)
                return "was ended, as the scheduler stops" if asked else f"took longer than {scheduled.at_most}"
        return f"ended with {code}" if code else ""


def done_by(printed: bytes) -> WorkDone:
    """What a job says that it did: the sums over its JSON document, a list of objects or one; of other text nothing."""
    try:
        document: Any = msgspec.json.decode(printed)
        parts = [msgspec.convert(part, _Part) for part in (document if isinstance(document, list) else [document])]
    except msgspec.DecodeError:
        return WorkDone()
    return WorkDone(
        packed_files=_sum(part.files_before for part in parts),
        packed_bytes=_sum(part.bytes_before for part in parts),
        freed_files=_sum(part.replaced_files + part.orphaned_files + part.deleted_files for part in parts),
        freed_bytes=_sum(part.bytes for part in parts if not part.files_before),
    )


def _sum(numbers: Iterable[int]) -> int:
    return sum(numbers)


def _ended(process: "subprocess.Popen[bytes]") -> int | None:
    try:
        return process.wait(_LOOK_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_LAST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
