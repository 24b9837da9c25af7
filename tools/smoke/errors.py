"""How a journey ends early: at which step, why, and what to look at next."""

from gamelake.errors import GamelakeError, TransientError


class StepFailedError(GamelakeError):
    """A step of the journey did not happen; `next_command` shows more."""

    def __init__(self, step: str, problem: str, next_command: str) -> None:
        super().__init__(f"not {step}: {problem}. Next: {next_command}")
        self.step = step
        self.problem = problem
        self.next_command = next_command


class NotYetError(TransientError):
    """What a step waits for has not happened; the text says what was seen instead."""
