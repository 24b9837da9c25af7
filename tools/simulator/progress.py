"""One line on a terminal that says how far the run is; silent elsewhere."""

import sys
import time
from typing import TextIO

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
