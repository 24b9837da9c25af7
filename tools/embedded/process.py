"""One child process: started with a log, waited for, and never left behind."""

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

TAIL_LINES = 20
TAIL_BYTES = 16_384


class ServiceError(StartupError):
    """An embedded service cannot be started or is gone."""


class ServiceMissingError(ServiceError):
    """What the service is made of, or the Java it runs on, is not on this machine."""


class ServiceEndedError(ServiceError):
    """The process ended by itself."""

    @classmethod
    def of(cls, name: str, exit_code: int, log_file: Path) -> Self:
        """Name the process, its exit code and what it said last."""
        return cls(f"{name} ended with exit code {exit_code}; {tail_of(log_file)}")


class ServiceUnhealthyError(ServiceError):
    """The process runs but never answered."""

    @classmethod
    def of(cls, name: str, seconds: float, log_file: Path) -> Self:
        """Name the process, the time it was given and what it said last."""
        return cls(f"{name} was not ready after {seconds:.0f} s; {tail_of(log_file)}")


def tail_of(log_file: Path) -> str:
    """The last lines of a log, under its path."""
    with log_file.open("rb") as log:
        size = log.seek(0, 2)
        log.seek(max(0, size - TAIL_BYTES))
        lines = log.read().decode(errors="replace").splitlines()[-TAIL_LINES:]
    return f"the end of {log_file}:\n" + "\n".join(lines)


TETHER = Path(__file__).with_name("tether.py")
SECONDS_BETWEEN_LOOKS = 0.05
SECONDS_TO_BE_REAPED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run and where its output goes; `environment` is added to the parent's."""

    name: str
    command: tuple[str, ...]
    log_file: Path
    environment: Mapping[str, str] = field(default_factory=dict)


class ChildProcess:
    """A running program in a process group of its own, which ends when this process ends, even by SIGKILL."""

    def __init__(self, program: Program) -> None:
        self.program = program
        program.log_file.parent.mkdir(parents=True, exist_ok=True)
        with program.log_file.open("ab") as log:
            self._tether = subprocess.Popen(
                (sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *program.command),
                env={**os.environ, **program.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C at the terminal is the parent's to handle, in its order
            )
        self.pid = self._read_pid()

    def is_running(self) -> bool:
        """Whether the program has not ended."""
        return self._tether.poll() is None

    def exit_code(self) -> int | None:
        """How the program ended, as a shell would say it; None while it runs."""
        return self._tether.poll()

    def raise_if_ended(self) -> None:
        """Do nothing while the program runs.

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
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def stop(self, grace: timedelta = timedelta(seconds=10)) -> None:
        """Ask the program to end, and kill it when it has not after the grace; twice is as good as once."""
        self._signal(signal.SIGTERM)
        try:
            self._tether.wait(grace.total_seconds())
        except subprocess.TimeoutExpired:
            self.kill()

    def finish(self, patience: timedelta) -> int:
        """Ask the program, and nothing that it has started, to end, and give its exit code.

        Raises:
            ServiceUnhealthyError: it had not ended when the patience was; now it is killed.
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
        """End the program as a crash would, and return when it is gone."""
        self._signal(signal.SIGKILL)
        self._tether.wait()
        self._wait_for_the_program()

    def _signal(self, number: signal.Signals) -> None:
        if self.is_running():
            os.killpg(self._tether.pid, number)

    def _wait_for_the_program(self) -> None:
        """Killed together with its tether, the program is nobody's child here, and may end a moment later.

        Not for ever: where nobody reaps orphans its number stays taken.
        """
        latest = time.monotonic() + SECONDS_TO_BE_REAPED
        with suppress(ProcessLookupError):
            while time.monotonic() < latest:
                os.kill(self.pid, 0)
                time.sleep(SECONDS_BETWEEN_LOOKS)

    def _read_pid(self) -> int:
        assert self._tether.stdout is not None  # noqa: S101 - Popen was asked for a pipe
        with self._tether.stdout as announcement:
            line = announcement.readline()
        if not line:
            raise ServiceEndedError.of(self.program.name, self._tether.wait(), self.program.log_file)
        return int(line)
