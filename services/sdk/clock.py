"""The gateway's time, on a device whose own clock may be wrong."""

from collections.abc import Callable
from email.utils import parsedate_to_datetime

# An answer says whole seconds and was on its way for a while: what differs by less is no error of the clock.
_NOISE_SECONDS = 5.0

DeviceClock = Callable[[], float]


class Clock:
    """The device's clock, in seconds since 1970, put right by what answers say."""

    def __init__(self, device: DeviceClock) -> None:
        self._device = device
        self._ahead = 0.0

    def now(self) -> float:
        """The gateway's time as far as it is known."""
        return self._device() + self._ahead

    def learn(self, date: str | None) -> bool:
        """Compare with the `Date` of an answer that has just come; says whether the clock was put right."""
        try:
            told = parsedate_to_datetime(date).timestamp() if date else None
        except ValueError:
            told = None
        if told is None or abs(told - self.now()) <= _NOISE_SECONDS:
            return False
        self._ahead = told - self._device()
        return True
