"""Simulated time: when each event of a run happened, by the clock at which it is sent."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

# Microseconds since 1970.
Clock: TypeAlias = Callable[[], int]

_DAY = 86_400.0
_PEAK_HOUR, _SWING = 19.0, 0.55
_STEPS = 2_048


def wall_clock() -> int:
    """Give the machine's time."""
    return time.time_ns() // 1000


class Timeline:
    """Spreads a run's events over the simulated time before now, denser in the evening (UTC) than at night."""

    def __init__(self, *, history: timedelta, events: int, now_us: int) -> None:
        ages = np.linspace(history.total_seconds(), 0, _STEPS)
        end = datetime.fromtimestamp(now_us / 1e6, UTC)
        end_seconds = end.hour * 3600 + end.minute * 60 + end.second
        busy = 1 + _SWING * np.cos((end_seconds - ages - _PEAK_HOUR * 3600) / _DAY * 2 * np.pi)
        done = np.concatenate(([0.0], np.cumsum(busy[1:])))
        self._done = done / done[-1] * events
        self._ages_us = ages * 1e6

    def event_times_us(self, positions: npt.NDArray[np.int64], now_us: int) -> npt.NDArray[np.int64]:
        """Give each event's time, in whole milliseconds."""
        ages_us = np.interp(positions, self._done, self._ages_us)
        return (now_us - ages_us).astype(np.int64) // 1000 * 1000
