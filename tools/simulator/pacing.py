"""A steady rate by the wall clock."""

import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

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


_EVERY_SECONDS = 0.5


class ProgressLine:
    """Rewrites one line of a terminal now and then."""

    def __init__(self, total: int, stream: TextIO = sys.stderr) -> None:
        self._total = total
        self._stream = stream
        self._events = 0
        self._start = self._shown = time.monotonic()

    def advance(self, events: int) -> None:
        """Count events, and show where the run is if it was a while ago."""
        self._events += events
        now = time.monotonic()
        if now - self._shown >= _EVERY_SECONDS:
            self._shown = now
            self._show(now)

    def close(self) -> None:
        """Show the end, and leave the line standing."""
        self._show(time.monotonic())
        if self._stream.isatty():
            self._stream.write("\n")

    def _show(self, now: float) -> None:
        if self._stream.isatty():
            rate = self._events / max(now - self._start, 1e-9)
            self._stream.write(f"\r{self._events:,} of {self._total:,} events, {rate:,.0f}/s   ")
            self._stream.flush()
