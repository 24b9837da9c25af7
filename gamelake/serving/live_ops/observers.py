"""The observer of the detector's judgements."""

from typing import Protocol

from gamelake.serving.live_ops.watching import Judgement


class JudgementObserver(Protocol):
    """Is called in the middle of a batch: it must be quick, and must not raise."""

    def judged(self, judgement: Judgement, states: int) -> None:
        """A batch was judged, and so many states changed."""
