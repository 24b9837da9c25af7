"""A steady rate by the wall clock."""

import threading
import time
from collections.abc import Callable

_STEP_SECONDS = 0.05


def events_per_step(rate: int) -> int:
    """Give how many events to send at one go, so that a step is short and costs little."""
    return max(1, int(rate * _STEP_SECONDS))


class Pacer:
    """Holds a sender back to so many events per second; after a stall it catches up at full speed."""

    def __init__(
        self, rate: int, stop: threading.Event, monotonic_seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._stop = stop
        self._now = monotonic_seconds
        self._start = monotonic_seconds()
        self._events = 0

    def wait_after(self, events: int) -> None:
        """Sleep until events beyond these are due, or until stopped."""
        self._events += events
        early = self._start + self._events / self._rate - self._now()
        if early > 0:
            self._stop.wait(early)
