"""The tolerance for the clocks of machines, and a clock that does not jump."""

import time
from collections.abc import Callable
from datetime import timedelta

# The difference between the clocks of two machines of the platform above which one of them counts as wrong. S3 refuses
# the requests of a machine whose clock is further off.
TOLERATED_SKEW = timedelta(minutes=15)

# Linux's monotonic clock stands still while the machine is suspended, this one does not; macOS has one clock for both.
_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed_nanoseconds() -> int:
    """Read a monotonic clock that counts the time in which the machine is suspended, in nanoseconds."""
    return time.clock_gettime_ns(_ELAPSED)


class SteadyClock:
    """The time of day without jumps, in microseconds since 1970: that of its start, and the time since.

    For comparing moments with each other: it stays as wrong as the machine's clock was at the start.
    """

    def __init__(
        self, time_of_day: Callable[[], int] = time.time_ns, elapsed: Callable[[], int] = elapsed_nanoseconds
    ) -> None:
        self._elapsed = elapsed
        self._start = time_of_day() - elapsed()

    def __call__(self) -> int:
        """The present time."""
        return (self._start + self._elapsed()) // 1000
