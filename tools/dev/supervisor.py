"""Starts programs in the order of their needs, starts ended ones again with growing pauses, and stops all of them."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tools.dev.programs import DevProgram
from tools.embedded.process import ServiceError

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
# A program that was healthy for so long begins with the first pause again.
_HEALTHY_SECONDS = 60.0


class ProgramState(StrEnum):
    """What a program is doing."""

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

    @property
    def is_running(self) -> bool:
        """Whether it was healthy, and has not ended."""
        return self._state is ProgramState.RUNNING

    @property
    def is_off(self) -> bool:
        """Whether it does not run, as it is not wanted."""
        return self._state is ProgramState.OFF

    def status(self) -> ProgramStatus:
        """The present status."""
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
            case ProgramState.WAITING if set(self.program.needs) <= set(running):
                self._launch()
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

    def _launch(self) -> None:
        self._starts += 1
        try:
            self.program.service.launch()
        except ServiceError as error:
            self._fail(str(error))
        else:
            self._enter(ProgramState.STARTING)

    def _poll_start(self) -> None:
        if self._fail_if_ended():
            return
        service = self.program.service
        if service.is_healthy():
            self._report(f"{self.program.name}: running after {self._seconds():.1f} s {self.program.address}".rstrip())
            self._enter(ProgramState.RUNNING)
        elif self._seconds() > service.deadline.total_seconds():
            service.kill()
            self._fail(f"was not ready after {service.deadline.total_seconds():.0f} s")

    def _fail_if_ended(self) -> bool:
        code = self.program.service.process.exit_code()
        if code is None:
            return False
        self._fail(f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}")
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
        """Whether each one that is wanted is healthy."""
        return all(each.is_running or each.is_off for each in self._programs)

    def request_restart(self, name: str, reason: str) -> None:
        """Have a program start again with the next poll; from any thread."""
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

    def restart_changed(self, changed: set[Path]) -> None:
        """Start again the programs that files are a part of."""
        for each in self._programs:
            if each.program.is_changed_by(changed):
                each.restart(f"as {_named(changed)} changed")

    def status(self) -> list[ProgramStatus]:
        """The status of each program."""
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


def _named(changed: set[Path]) -> str:
    first = min(changed).name
    return first if len(changed) == 1 else f"{first} and {len(changed) - 1} more"
