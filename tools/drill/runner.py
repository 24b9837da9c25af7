"""One drill after the other, each timed from its fault to the first event that is in its table again."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from threading import Event

import msgspec

from gamelake.model.errors import GamelakeError
from tools.drill.environment import Ground
from tools.drill.recoveries import Drill

_STEPS_BEFORE = 5


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a drill: how long the recovery took, and what is wrong after it (empty if nothing)."""

    name: str
    seconds: float
    bound_seconds: float
    steps: dict[str, float]
    acknowledged: int
    problems: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether it came about, in time, and nothing was lost."""
        return not self.problems and self.seconds <= self.bound_seconds


def run_drill(drill: Drill, ground: Ground, tell: Callable[[str], None]) -> Outcome:
    """Break it, put it right, and see what is left."""
    steps: dict[str, float] = {}
    problems: list[str] = []
    clock = time.monotonic

    def timed(step: str, work: Callable[[], None]) -> None:
        started = clock()
        try:
            work()
        finally:
            tell(f"{step}: {clock() - started:.1f} s")
        steps[step] = round(clock() - started, 1)

    struck = clock()
    try:
        for _ in range(_STEPS_BEFORE):
            ground.game.send(Event())
        ground.wait_for_rows()
        with ground.game.playing() if drill.plays_on else nullcontext():
            timed("strike", lambda: drill.strike(ground))
            struck = clock()
            timed("recover", lambda: drill.recover(ground))
            timed("well again", ground.wait_until_well)
            seconds = clock() - struck
        timed("nothing is lost", ground.wait_for_rows)
        problems = ground.problems()
    except GamelakeError as error:
        seconds = clock() - struck
        problems = [*problems, f"{type(error).__name__}: {error}"]
    return Outcome(
        name=drill.name,
        seconds=seconds,
        bound_seconds=drill.bound.total_seconds(),
        steps=steps,
        acknowledged=len(ground.game.acknowledged),
        problems=tuple(problems),
    )
