"""The start of a program: its progress, for which the supervisor waits, and the reason of its failure."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

from tools.embedded.process import TAIL_BYTES, ChildProcess

# A JVM that only waits uses less than this in a minute, and one that starts more, on a busy machine, too.
_CPU_SECONDS = 1.0
_POLL_EVERY = 2.0
_LONGEST_LINE = 160
_FAILURE = re.compile(r' program_failed .*?\berror=("(?:[^"\\]|\\.)*"|\S+)')


class StartProgress:
    """Watches one start: it makes progress as long as its log grows, or its processes use CPU time.

    Args:
        process: that starts.
        clock: in seconds.
    """

    def __init__(self, process: ChildProcess, clock: Callable[[], float] = time.monotonic) -> None:
        self._process = process
        self._clock = clock
        self._polled_at = self._progressed_at = clock()
        self._log_bytes, self._cpu_seconds = -1, 0.0

    def seconds_without(self) -> float:
        """Return the time since its last progress."""
        now = self._clock()
        if now - self._polled_at >= _POLL_EVERY:
            self._polled_at = now
            log_bytes, cpu_seconds = _size(self._process.program.log_file), self._process.cpu_seconds()
            if log_bytes > self._log_bytes or cpu_seconds > self._cpu_seconds + _CPU_SECONDS:
                self._log_bytes, self._cpu_seconds, self._progressed_at = log_bytes, cpu_seconds, now
        return now - self._progressed_at


def last_line(process: ChildProcess) -> str:
    """Return the last line of this start's log, shortened; empty if there is none."""
    lines = [line for line in _tail(process).splitlines() if line.strip()]
    return lines[-1].strip()[:_LONGEST_LINE] if lines else ""


def failure(process: ChildProcess) -> str:
    """Return the error with which a program of ours has ended, as its log has it; empty if it has none."""
    found = _FAILURE.findall(_tail(process))
    if not found:
        return ""
    text: str = json.loads(found[-1]) if found[-1].startswith('"') else found[-1]
    return text


def _tail(process: ChildProcess) -> str:
    """The end of the log, without what earlier starts have written."""
    file = process.program.log_file
    with file.open("rb") as log:
        log.seek(max(process.log_begins, _size(file) - TAIL_BYTES))
        return log.read().decode(errors="replace")


def _size(file: Path) -> int:
    return file.stat().st_size
