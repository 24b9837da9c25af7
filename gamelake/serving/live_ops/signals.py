"""What a signal is: which kinds there are, when it began and ended, and how surely it is no chance."""

import math
import uuid
from dataclasses import dataclass
from enum import StrEnum

import msgspec
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_NAMESPACE = uuid.UUID("2c6a2f0e-53b8-4d0a-9d6f-6a1d1b7a3f11")


class SignalKind(StrEnum):
    """What is not as it should be; also a column's value and a metric's label."""

    SILENT = "silent"
    EVENTS_FALL = "events_fall"
    BOOKINGS_FALL = "bookings_fall"
    ERRORS_RISE = "errors_rise"


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a game; minutes are counted since 1970 by the events' clocks, `ended` is None while it lasts.

    `begun` is the first minute of the window, `noticed` the last one; `observed` and `expected` are what was in
    them and what should have been. `app_version` is empty unless it is about one.
    """

    kind: SignalKind
    game: str
    app_version: str = ""
    begun: int
    noticed: int
    ended: int | None = None
    observed: float
    expected: float

    @property
    def signal_id(self) -> str:
        """The same at the beginning and at the end, and whenever the same minutes are judged again."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.kind}/{self.game}/{self.app_version}/{self.begun}"))

    @property
    def subject(self) -> tuple[SignalKind, str, str]:
        """What may have one signal at a time only."""
        return self.kind, self.game, self.app_version


def fewer_by_chance(observed: Floats, expected: Floats) -> Floats:
    """How unlikely it is that counts are so low by chance: minus the natural logarithm of a bound of the probability.

    Args:
        observed: float64 of any shape.
        expected: float64 of the same shape.

    Returns:
        float64 of that shape; 0 where `observed` is not below `expected`.

    Source: Chernoff's bound of the lower tail of a Poisson distribution, `exp(-(e - o + o ln(o/e)))`. It never
    overstates, and takes counts that are not whole, such as those scaled to a Poisson distribution.
    """
    shrunk = np.maximum(expected, 1e-12)
    part = np.where(observed > 0, observed * np.log(np.maximum(observed, 1e-300) / shrunk), 0.0)
    return np.where(observed < expected, expected - observed + part, 0.0)


def more_by_chance(observed: float, expected: float) -> float:
    """How surely so many are no chance; see `fewer_by_chance`."""
    if observed <= expected:
        return 0.0
    shrunk = max(expected, 1e-12)
    return shrunk - observed + observed * math.log(observed / shrunk)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What counts as not as it should be.

    Attributes:
        tolerated: falls to this part of what is expected are no signal, however sure.
        sureness: a signal's probability by chance is under exp(-sureness), given a fall to `tolerated`.
        recovered: a fall is over at this part of what is expected.
        windows: lengths of the windows in minutes, the shortest first.
        warm_up: minutes of a game before anything is said of it.
        common: how many games need an expectation to distinguish a drop of the whole platform from one of a game.
        error_factor: an error rate so many times that of the other versions is no signal.
        error_recovered: and at so many times it is over.
        new_version: minutes for which a version counts as one that has just appeared.
        longest: minutes after which what is there counts as usual.
    """

    tolerated: float = 0.7
    sureness: float = 12.0
    recovered: float = 0.85
    windows: tuple[int, ...] = (2, 3, 5, 10, 20, 40)
    warm_up: int = 60
    common: int = 4
    error_factor: float = 2.0
    error_recovered: float = 1.5
    new_version: int = 24 * 60
    longest: int = 24 * 60
