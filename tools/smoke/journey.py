"""The steps that one event takes, in order, each waited for until the patience of the whole is over."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

from gamelake.model.errors import GamelakeError, TransientError


class StepFailedError(GamelakeError):
    """A step of the journey did not happen; `next_command` shows more."""

    def __init__(self, step: str, problem: str, next_command: str) -> None:
        super().__init__(f"not {step}: {problem}. Next: {next_command}")
        self.step = step
        self.problem = problem
        self.next_command = next_command


class NotYetError(TransientError):
    """What a step waits for has not happened; the text says what was seen instead."""


SECONDS_BETWEEN_LOOKS = 0.1
T = TypeVar("T")


class Step(StrEnum):
    """What has happened to the event, in the order in which it does."""

    SIGNED = "signed"
    ACKNOWLEDGED = "acknowledged"
    DECIDED = "decided"
    COMMITTED = "committed"
    REGISTERED = "registered"
    VISIBLE = "visible"


NEXT_COMMANDS = {
    Step.SIGNED: "make ps",
    Step.ACKNOWLEDGED: "make logs S=ingest",
    Step.DECIDED: "make ps; make logs S=ingest-events",
    Step.COMMITTED: "make logs S=ingest-events",
    Step.REGISTERED: "make logs S=catalog",
    Step.VISIBLE: "make logs S=trino",
}


@dataclass(frozen=True, slots=True)
class StepTaken:
    """A step that has happened, how many seconds after the journey's start, and where to."""

    step: Step
    seconds: float
    place: str


@dataclass(slots=True)
class Journey:
    """The way of one event so far; `tell` hears of each step as it happens."""

    patience: timedelta
    tell: Callable[[StepTaken], None]
    steps: list[StepTaken] = field(default_factory=list)
    _started: float = field(default_factory=time.monotonic)

    def reached(self, step: Step, place: str) -> None:
        """Note that a step has happened just now."""
        taken = StepTaken(step, round(self._elapsed(), 3), place)
        self.steps.append(taken)
        self.tell(taken)

    def await_step(self, step: Step, look: Callable[[], T], hint: str = "") -> T:
        """Look until there is something to see; `look` raises NotYetError while there is not.

        When it never comes, `hint` is one more command to look at.

        Raises:
            StepFailedError: the patience is over, or `look` says that there is nothing to wait for.
        """
        while True:
            try:
                return _answer_within(self.remaining(), look)
            except NotYetError as error:
                if self._elapsed() > self.patience.total_seconds():
                    problem = f"{error} after {self.patience.total_seconds():g} s"
                    next_command = NEXT_COMMANDS[step] + (f"; {hint}" if hint else "")
                    raise StepFailedError(step, problem, next_command) from error
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def seconds_between(self, first: Step, last: Step) -> float:
        """Time from one step that has happened to another."""
        at = {taken.step: taken.seconds for taken in self.steps}
        return round(at[last] - at[first], 3)

    def remaining(self) -> float:
        """Seconds of patience that are left; never less than one, so that a last look gets its answer."""
        return max(1.0, self.patience.total_seconds() - self._elapsed())

    def _elapsed(self) -> float:
        return time.monotonic() - self._started


def _answer_within(seconds: float, look: Callable[[], T]) -> T:
    """What `look` returns or raises; the object store's client alone would try again for minutes.

    Raises:
        NotYetError: it took longer.
    """
    answer: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def ask() -> None:
        try:
            answer.put((look(), None))
        except BaseException as error:
            answer.put((None, error))

    Thread(target=ask, daemon=True).start()
    try:
        found, error = answer.get(timeout=seconds)
    except Empty:
        raise NotYetError("nobody answered") from None
    if error is not None:
        raise error
    return found  # type: ignore[return-value] # it is what `look` returned
