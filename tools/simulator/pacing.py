"""A steady rate by the wall clock, and a progress line on the terminal."""

import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

# A step costs about 8 ms of CPU time, however few its events are.
_SHORT_STEP_SECONDS, _LONG_STEP_SECONDS = 0.05, 0.5
_EVENTS_WORTH_A_STEP = 100
_EVERY_SECONDS = 0.5


def events_per_step(rate: int) -> int:
    """Return the number of events to send at once: those of 0.05 s at a rate (per second), or of 0.5 s if few."""
    few = min(int(rate * _LONG_STEP_SECONDS), _EVENTS_WORTH_A_STEP)
    return max(1, int(rate * _SHORT_STEP_SECONDS), few)


class Pacer:
    """Limits a sender to `rate` events per second; after a stall the sender catches up at full speed."""

    def __init__(
        self, rate: int, stop: threading.Event, monotonic_seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._stop = stop
        self._now = monotonic_seconds
        self._start = monotonic_seconds()
        self._events = 0

    def wait_after(self, events: int) -> None:
        """Sleep until the next events are due after `events` more were sent, or until stopped."""
        self._events += events
        early = self._start + self._events / self._rate - self._now()
        if early > 0:
            self._stop.wait(early)


class ProgressLine:
    """Rewrites one line of a terminal every half second; silent where the stream is not a terminal."""

    def __init__(self, total: int, stream: TextIO = sys.stderr) -> None:
        self._total = total
        self._stream = stream
        self._events = 0
        self._start = self._shown = time.monotonic()

    def advance(self, events: int) -> None:
        """Count events, and update the line if it is due."""
        self._events += events
        now = time.monotonic()
        if now - self._shown >= _EVERY_SECONDS:
            self._shown = now
            self._show(now)

    def close(self) -> None:
        """Show the final count, and end the line."""
        self._show(time.monotonic())
        if self._stream.isatty():
            self._stream.write("\n")

    def _show(self, now: float) -> None:
        if self._stream.isatty():
            rate = self._events / max(now - self._start, 1e-9)
            self._stream.write(f"\r{self._events:,} of {self._total:,} events, {rate:,.0f}/s   ")
            self._stream.flush()
