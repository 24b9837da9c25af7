"""The steps of an event's path, in order; each is awaited until the time limit of the whole trace."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

from gamelake.model.errors import GamelakeError, TransientError

POLL_SECONDS = 0.1
T = TypeVar("T")


class StepFailedError(GamelakeError):
    """A step did not happen; `next_command` is the command to run next."""

    def __init__(self, step: str, problem: str, next_command: str) -> None:
        super().__init__(f"not {step}: {problem}. Next: {next_command}")
        self.step = step
        self.problem = problem
        self.next_command = next_command


class NotYetError(TransientError):
    """The awaited step has not happened yet; the text describes the present state."""


class Step(StrEnum):
    """The steps of an event, in their order."""

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
class CompletedStep:
    """A completed step: seconds since the start of the trace, and a description of the place."""

    step: Step
    seconds: float
    place: str


@dataclass(slots=True)
class EventTrace:
    """The path of one event so far; `report` is called with each step when it is completed."""

    patience: timedelta
    report: Callable[[CompletedStep], None]
    steps: list[CompletedStep] = field(default_factory=list)
    _started: float = field(default_factory=time.monotonic)

    def reached(self, step: Step, place: str) -> None:
        """Record that a step was completed now."""
        taken = CompletedStep(step, round(self._elapsed(), 3), place)
        self.steps.append(taken)
        self.report(taken)

    def await_step(self, step: Step, poll: Callable[[], T], hint: str = "") -> T:
        """Call `poll` until it returns; it raises NotYetError while the step has not happened.

        Args:
            step: the awaited step.
            poll: returns the result of the step.
            hint: one more command to suggest if the step fails.

        Raises:
            StepFailedError: the time limit is over, or `poll` raised it.
        """
        while True:
            try:
                return _answer_within(self.remaining(), poll)
            except NotYetError as error:
                if self._elapsed() > self.patience.total_seconds():
                    problem = f"{error} after {self.patience.total_seconds():g} s"
                    next_command = NEXT_COMMANDS[step] + (f"; {hint}" if hint else "")
                    raise StepFailedError(step, problem, next_command) from error
            time.sleep(POLL_SECONDS)

    def seconds_between(self, first: Step, last: Step) -> float:
        """Return the seconds from one completed step to another."""
        at = {taken.step: taken.seconds for taken in self.steps}
        return round(at[last] - at[first], 3)

    def remaining(self) -> float:
        """Return the seconds until the time limit; at least one, so that the last poll can return."""
        return max(1.0, self.patience.total_seconds() - self._elapsed())

    def _elapsed(self) -> float:
        return time.monotonic() - self._started


def _answer_within(seconds: float, poll: Callable[[], T]) -> T:
    """What `poll` returns or raises, with a timeout: the object store's client alone would retry for minutes.

    Raises:
        NotYetError: `poll` took longer.
    """
    answer: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def ask() -> None:
        try:
            answer.put((poll(), None))
        except BaseException as error:
            answer.put((None, error))

    Thread(target=ask, daemon=True).start()
    try:
        found, error = answer.get(timeout=seconds)
    except Empty:
        raise NotYetError("no response") from None
    if error is not None:
        raise error
    return found  # type: ignore[return-value] # it is what `poll` returned
