"""One child process: started with a log file, awaited, and never left behind; errors show the end of its log."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Self

from gamelake.model.errors import StartupError
from tools.embedded.process_tree import cpu_seconds, processes

TAIL_LINES = 20
TAIL_BYTES = 16_384
POLL_SECONDS = 0.05
SECONDS_TO_BE_REAPED = 5


class ServiceError(StartupError):
    """An embedded service cannot be started, or has ended."""


class ServiceMissingError(ServiceError):
    """The service's program, or the Java that it needs, is not installed."""


class ServiceEndedError(ServiceError):
    """The process ended by itself."""

    @classmethod
    def of(cls, name: str, exit_code: int, log_file: Path) -> Self:
        """Create an error with the process, its exit code and the end of its log."""
        return cls(f"{name} ended with exit code {exit_code}; {tail_of(log_file)}")


class ServiceUnhealthyError(ServiceError):
    """The process runs, but did not become healthy."""

    @classmethod
    def of(cls, name: str, seconds: float, log_file: Path) -> Self:
        """Create an error with the process, the timeout and the end of its log."""
        return cls(f"{name} was not ready after {seconds:.0f} s; {tail_of(log_file)}")


def tail_of(log_file: Path) -> str:
    """Return the path of a log with its last lines."""
    with log_file.open("rb") as log:
        size = log.seek(0, 2)
        log.seek(max(0, size - TAIL_BYTES))
        lines = log.read().decode(errors="replace").splitlines()[-TAIL_LINES:]
    return f"the end of {log_file}:\n" + "\n".join(lines)


TETHER = Path(__file__).with_name("tether.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A command and the place of its output; `environment` is added to the parent's."""

    name: str
    command: tuple[str, ...]
    log_file: Path
    environment: Mapping[str, str] = field(default_factory=dict)


class ChildProcess:
    """A running program in its own process group, which ends when this process ends, even by SIGKILL."""

    def __init__(self, program: Program) -> None:
        self.program = program
        program.log_file.parent.mkdir(parents=True, exist_ok=True)
        with program.log_file.open("ab") as log:
            # Earlier starts have written what is before.
            self.log_begins = log.tell()
            self._tether = subprocess.Popen(
                (sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *program.command),
                env={**os.environ, **program.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C at the terminal goes to the parent, which stops its children in order
            )
        self.pid = self._read_pid()

    def cpu_seconds(self) -> float:
        """Return the CPU time of the program and of all processes that it has started; 0 where there is no /proc."""
        return cpu_seconds(processes(), self._tether.pid)

    def is_running(self) -> bool:
        """Return True if the program has not ended."""
        return self._tether.poll() is None

    def exit_code(self) -> int | None:
        """Return the exit code as in a shell; None while the program runs."""
        return self._tether.poll()

    def raise_if_ended(self) -> None:
        """Check that the program runs.

        Raises:
            ServiceEndedError: it has ended.
        """
        exit_code = self._tether.poll()
        if exit_code is not None:
            raise ServiceEndedError.of(self.program.name, exit_code, self.program.log_file)

    def wait_until(self, is_healthy: Callable[[], bool], deadline: timedelta) -> None:
        """Return as soon as the program is healthy.

        Raises:
            ServiceEndedError: it ended before.
            ServiceUnhealthyError: the deadline passed.
        """
        latest = time.monotonic() + deadline.total_seconds()
        while not is_healthy():
            self.raise_if_ended()
            if time.monotonic() > latest:
                raise ServiceUnhealthyError.of(self.program.name, deadline.total_seconds(), self.program.log_file)
            time.sleep(POLL_SECONDS)

    def stop(self, grace: timedelta = timedelta(seconds=10)) -> None:
        """Send SIGTERM, and SIGKILL if the program has not ended after the grace period; idempotent."""
        self._signal(signal.SIGTERM)
        try:
            self._tether.wait(grace.total_seconds())
        except subprocess.TimeoutExpired:
            self.kill()

    def finish(self, patience: timedelta) -> int:
        """Send SIGTERM to the program alone, not to its children; returns its exit code.

        Raises:
            ServiceUnhealthyError: it did not end in time, and was killed.
        """
        if self.is_running():
            with suppress(ProcessLookupError):  # it may end by itself just now
                os.kill(self.pid, signal.SIGTERM)
        try:
            return self._tether.wait(patience.total_seconds())
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise ServiceUnhealthyError(f"{self.program.name} did not end within {patience}") from error

    def kill(self) -> None:
        """Send SIGKILL, as in a crash, and return when the program has ended."""
        self._signal(signal.SIGKILL)
        self._tether.wait()
        self._wait_for_the_program()

    def _signal(self, number: signal.Signals) -> None:
        if self.is_running():
            os.killpg(self._tether.pid, number)

    def _wait_for_the_program(self) -> None:
        """Wait for the program, which is an orphan once its tether is killed, and may end a moment later.

        With a timeout: where no init process reaps orphans, the process id stays.
        """
        latest = time.monotonic() + SECONDS_TO_BE_REAPED
        with suppress(ProcessLookupError):
            while time.monotonic() < latest:
                os.kill(self.pid, 0)
                time.sleep(POLL_SECONDS)

    def _read_pid(self) -> int:
        assert self._tether.stdout is not None  # noqa: S101 - Popen was asked for a pipe
        with self._tether.stdout as announcement:
            line = announcement.readline()
        if not line:
            raise ServiceEndedError.of(self.program.name, self._tether.wait(), self.program.log_file)
        return int(line)
