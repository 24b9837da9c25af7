"""Runs a task's program to its end, and reads the work done from its output.

A separate process returns its memory when it ends, can be killed, and can't crash the scheduler.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from threading import Event
from typing import Any

import msgspec

from gamelake.contract.schedule import ScheduledTask
from gamelake.maintenance.run_records import WorkDone

_POLL_SECONDS = 0.5
# Between SIGTERM and SIGKILL. Jobs are safe to kill at any moment.
_TERMINATION_SECONDS = 5.0


class RunOutcome(StrEnum):
    """The outcome of a run; also the metric's label."""

    OK = "ok"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """A run that has ended.

    Attributes:
        done: the work that it did.
        seconds: its duration.
        problem: the reason why it failed; empty if it succeeded.
        printed: its standard output.
    """

    done: WorkDone
    seconds: float
    problem: str = ""
    printed: bytes = b""

    @property
    def outcome(self) -> RunOutcome:
        """The outcome of the run."""
        return RunOutcome.FAILED if self.problem else RunOutcome.OK


class _Part(msgspec.Struct, frozen=True):
    """A job's result for one table: compaction prints the first two fields, vacuum and log cleanup print the others."""

    files_before: int = 0
    bytes_before: int = 0
    replaced_files: int = 0
    orphaned_files: int = 0
    deleted_files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class ProgramRunner:
    """Runs tasks as `python -m jobs.<job>`.

    Attributes:
        grace: a run may continue for this long after the scheduler was asked to stop.
        heartbeat: called every half second during a run.
    """

    grace: timedelta
    heartbeat: Callable[[], None] = lambda: None

    def run(self, scheduled: ScheduledTask, stop: Event) -> ProgramRun:
        """Run a task's program until it ends, or end it when it exceeds its time limit or the grace.

        Args:
            scheduled: the task.
            stop: set when the scheduler is to stop; the grace begins then.

        Returns:
            The run; a program that failed or was ended is a run with a problem, not an error.
        """
        command = [sys.executable, "-m", f"jobs.{scheduled.job}", *scheduled.arguments]
        started = time.monotonic()
        with tempfile.TemporaryFile() as printed:
            # In its own session it does not receive the SIGINT of Ctrl-C: the scheduler then waits for its end.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=printed, start_new_session=True)  # noqa: S603 # the schedule is a contract of ours
            problem = self._watched(process, scheduled, stop)
            printed.seek(0)
            output = printed.read()
            return ProgramRun(work_done(output), time.monotonic() - started, problem, output)

    def _watched(self, process: "subprocess.Popen[bytes]", scheduled: ScheduledTask, stop: Event) -> str:
        """Wait for the end, and return the problem; empty if the program succeeded."""
        latest = time.monotonic() + scheduled.at_most.total_seconds()
        is_asked = False
        while (code := _ended(process)) is None:
            self.heartbeat()
            if stop.is_set() and not is_asked:
                is_asked, latest = True, min(latest, time.monotonic() + self.grace.total_seconds())
            if time.monotonic() >= latest:
                _end(process)
                return "was ended because the scheduler stops" if is_asked else f"took longer than {scheduled.at_most}"
        return f"ended with {code}" if code else ""


def work_done(printed: bytes) -> WorkDone:
    """Sum up a job's output, a JSON document of one object or a list of them; other text counts as no work."""
    try:
        document: Any = msgspec.json.decode(printed)
        parts = [msgspec.convert(part, _Part) for part in (document if isinstance(document, list) else [document])]
    except msgspec.DecodeError:
        return WorkDone()
    return WorkDone(
        compacted_files=sum(part.files_before for part in parts),
        compacted_bytes=sum(part.bytes_before for part in parts),
        deleted_files=sum(part.replaced_files + part.orphaned_files + part.deleted_files for part in parts),
        deleted_bytes=sum(part.bytes for part in parts if not part.files_before),
    )


def _ended(process: "subprocess.Popen[bytes]") -> int | None:
    try:
        return process.wait(_POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_TERMINATION_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
