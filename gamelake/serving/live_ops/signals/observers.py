"""The observer of the detector's judgements."""

from typing import Protocol

from gamelake.serving.live_ops.signals.watching import Judgement


class JudgementObserver(Protocol):
    """Is notified of judgements.

    The decider calls it on the driver's thread, once per attempt at a batch, after the signals were published and
    before the batch is decided. It must be quick. If it raises, the query ends.
    """

    def judged(self, judgement: Judgement, states: int) -> None:
        """Record that a batch was judged; `states` is the number of players whose state changed."""
