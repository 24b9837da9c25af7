"""Starts programs in the order of their needs, starts ended ones again with growing pauses, and stops all of them."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tools.dev.programs import DevProgram
from tools.dev.running import named
from tools.dev.starts import StartProgress, failure, last_line
from tools.embedded.process import ServiceError

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
# A program that was healthy for so long begins with the first pause again.
_HEALTHY_SECONDS = 60.0
# A start is given up once it has made no progress for so long.
PATIENCE = 60.0
# Between two lines about a start that takes long.
_NEWS_EVERY = 30.0


class ProgramState(StrEnum):
    """The state of a program."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class ProgramStatus:
    """The status of one program.

    Attributes:
        seconds: since the state began.
        restarts: how often it was started again.
        detail: the reason of the state, if there is one.
    """

    name: str
    state: ProgramState
    seconds: float
    restarts: int
    address: str
    detail: str


class SupervisedProgram:
    """One program, started again whenever it ends.

    Args:
        report: takes a line about each change that a person should know of.
    """

    def __init__(
        self, program: DevProgram, report: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.program = program
        self._report = report
        self._clock = clock
        self._state, self._since = ProgramState.WAITING, clock()
        self._failures, self._starts = 0, 0
        self._pause = 0.0
        self._detail = ""
        self._progress: StartProgress | None = None
        self._news_at = 0.0

    @property
    def is_running(self) -> bool:
        """True if it was healthy, and has not ended."""
        return self._state is ProgramState.RUNNING

    @property
    def is_off(self) -> bool:
        """True if it is not meant to run."""
        return self._state is ProgramState.OFF

    def status(self) -> ProgramStatus:
        """Return the present status."""
        restarts = max(0, self._starts - 1)
        return ProgramStatus(
            self.program.name, self._state, self._seconds(), restarts, self.program.address, self._detail
        )

    def poll(self, running: Iterable[str]) -> None:
        """Start it if it is due, stop it if it is not wanted, and notice that it is healthy, or has ended.

        Args:
            running: the names of the programs that are healthy.
        """
        if not self.program.is_wanted():
            self._switch_off()
            return
        match self._state:
            case ProgramState.OFF:
                self._enter(ProgramState.WAITING)
            case ProgramState.WAITING:
                self._start_after(running)
            case ProgramState.STARTING:
                self._poll_start()
            case ProgramState.RUNNING:
                self._fail_if_ended()
            case ProgramState.PAUSED if self._seconds() >= self._pause:
                self._launch()

    def restart(self, reason: str) -> None:
        """Stop it, and start it at once; one that waits, or is not wanted, does not start."""
        if self._state in {ProgramState.WAITING, ProgramState.OFF} or not self.program.is_wanted():
            return
        self._report(f"{self.program.name}: starts again, {reason}")
        self.program.service.stop()
        self._failures = 0
        self._launch()

    def stop(self) -> None:
        """Stop it."""
        self.program.service.stop()

    def _switch_off(self) -> None:
        if self.is_off:
            return
        if self._state is not ProgramState.WAITING:
            self._report(f"{self.program.name}: stops")
            self.program.service.stop()
        self._failures = 0
        self._enter(ProgramState.OFF)

    def _start_after(self, running: Iterable[str]) -> None:
        missing = sorted(set(self.program.needs) - set(running))
        self._detail = f"waits for {', '.join(missing)}"
        if not missing:
            self._launch()

    def _launch(self) -> None:
        self._starts += 1
        try:
            self.program.service.launch()
        except ServiceError as error:
            self._fail(str(error))
        else:
            self._enter(ProgramState.STARTING)
            self._progress = StartProgress(self.program.service.process, self._clock)
            self._news_at = self._since + _NEWS_EVERY

    def _poll_start(self) -> None:
        if self._fail_if_ended():
            return
        service = self.program.service
        if service.is_healthy():
            self._report(f"{self.program.name}: running after {self._seconds():.1f} s {self.program.address}".rstrip())
            self._enter(ProgramState.RUNNING)
            return
        self._detail = last_line(service.process)
        without = self._progress.seconds_without() if self._progress else 0.0
        if without > PATIENCE:
            service.kill()
            self._fail(f"was not ready after {self._seconds():.0f} s, and made no progress for {without:.0f} s")
        elif self._clock() >= self._news_at:
            self._news_at += _NEWS_EVERY
            self._report(f"{self.program.name}: starting for {self._seconds():.0f} s; {self._detail}".rstrip("; "))

    def _fail_if_ended(self) -> bool:
        code = self.program.service.process.exit_code()
        if code is None:
            return False
        reason = failure(self.program.service.process)
        ended = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        self._fail(f"{ended}: {reason}" if reason else ended)
        return True

    def _fail(self, what: str) -> None:
        if self._state is ProgramState.RUNNING and self._seconds() > _HEALTHY_SECONDS:
            self._failures = 0
        self._pause = min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
        self._failures += 1
        self._enter(ProgramState.PAUSED, f"{what}; starts again after {self._pause:.0f} s; {self._log()}")
        self._report(f"{self.program.name}: {self._detail}")

    def _log(self) -> str:
        try:
            return f"its log is {self.program.service.process.program.log_file}"
        except ServiceError:
            return "it has no log yet"

    def _enter(self, state: ProgramState, detail: str = "") -> None:
        self._state, self._since, self._detail = state, self._clock(), detail

    def _seconds(self) -> float:
        return self._clock() - self._since


class Supervisor:
    """All programs."""

    def __init__(self, programs: Sequence[DevProgram], report: Callable[[str], None]) -> None:
        self._programs = [SupervisedProgram(program, report) for program in programs]
        self._requests: deque[tuple[str, str]] = deque()

    @property
    def are_all_running(self) -> bool:
        """True if each program that is meant to run is healthy."""
        return all(each.is_running or each.is_off for each in self._programs)

    def request_restart(self, name: str, reason: str) -> None:
        """Request that a program starts again with the next poll; from any thread."""
        self._requests.append((name, reason))

    def poll(self) -> None:
        """Start again what was requested, and poll each program."""
        while self._requests:
            name, reason = self._requests.popleft()
            for each in self._programs:
                if each.program.name == name:
                    each.restart(reason)
        for each in self._programs:
            each.poll([other.program.name for other in self._programs if other.is_running])

    def restart_changed(self, changed: set[Path]) -> bool:
        """Start again the programs that files are a part of; returns True if there are any."""
        affected = [each for each in self._programs if each.program.is_changed_by(changed)]
        for each in affected:
            each.restart(f"as {named(changed)} changed")
        return bool(affected)

    def status(self) -> list[ProgramStatus]:
        """Return the status of each program."""
        return [each.status() for each in self._programs]

    def stop(self) -> None:
        """Stop all: first those that others do not need, at the same time, last those that all need."""
        left = list(self._programs)
        while left:
            needed = {name for each in left for name in each.program.needs}
            last = [each for each in left if each.program.name not in needed]
            with ThreadPoolExecutor(len(last)) as pool:
                list(pool.map(SupervisedProgram.stop, last))
            left = [each for each in left if each not in last]
