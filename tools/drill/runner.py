"""Runs a drill and times it, from the fault to the first new event that is in its table."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from threading import Event

import msgspec

from gamelake.model.errors import GamelakeError
from tools.drill.environment import DrillEnvironment
from tools.drill.recoveries import Drill

_STEPS_BEFORE = 5


class DrillResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a drill: seconds of the recovery and of each step, and the problems found after it."""

    name: str
    seconds: float
    bound_seconds: float
    steps: dict[str, float]
    acknowledged: int
    problems: tuple[str, ...] = ()

    @property
    def is_successful(self) -> bool:
        """True if the recovery succeeded in time and without loss."""
        return not self.problems and self.seconds <= self.bound_seconds


def run_drill(drill: Drill, environment: DrillEnvironment, report: Callable[[str], None]) -> DrillResult:
    """Inject the fault, recover, and check that nothing was lost or duplicated."""
    steps: dict[str, float] = {}
    problems: list[str] = []
    clock = time.monotonic

    def timed(step: str, work: Callable[[], None]) -> None:
        started = clock()
        try:
            work()
        finally:
            report(f"{step}: {clock() - started:.1f} s")
        steps[step] = round(clock() - started, 1)

    struck = clock()
    seconds = 0.0
    try:
        for _ in range(_STEPS_BEFORE):
            environment.game.send(Event())
        environment.wait_for_rows()
        with environment.game.playing() if drill.keeps_playing else nullcontext():
            try:
                timed("fault", lambda: drill.strike(environment))
                struck = clock()
                timed("recovery", lambda: drill.recover(environment))
                timed("healthy again", environment.wait_until_healthy)
                seconds = clock() - struck
            finally:
                if clean_up := drill.clean_up:
                    timed("clean-up", lambda: clean_up(environment))
        timed("all rows present", environment.wait_for_rows)
        problems = environment.problems()
    except GamelakeError as error:
        seconds = seconds or clock() - struck
        problems = [*problems, f"{type(error).__name__}: {error}"]
    return DrillResult(
        name=drill.name,
        seconds=seconds,
        bound_seconds=drill.bound.total_seconds(),
        steps=steps,
        acknowledged=len(environment.game.acknowledged),
        problems=tuple(problems),
    )
