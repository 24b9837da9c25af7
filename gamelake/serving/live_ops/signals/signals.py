"""The signals: their kinds, when one began and ended, and how unlikely it is to be noise."""

import math
import uuid
from dataclasses import dataclass
from enum import StrEnum

import msgspec
import numpy as np

from gamelake.model.arrays import Floats

_NAMESPACE = uuid.UUID("2c6a2f0e-53b8-4d0a-9d6f-6a1d1b7a3f11")


class SignalKind(StrEnum):
    """The kind of a signal; also a column's value and a metric's label."""

    SILENT = "silent"
    EVENTS_FALL = "events_fall"
    BOOKINGS_FALL = "bookings_fall"
    ERRORS_RISE = "errors_rise"


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """An incident of a game. Minutes are minutes of event time since 1970.

    Attributes:
        kind: the kind of the signal.
        game: the game's name.
        app_version: the version that it is about; "" if it is about the whole game.
        begun: the first minute of the window in which it was noticed.
        noticed: the last minute of that window.
        ended: the minute in which it ended; None while it lasts.
        observed: the sum of the measure in the window.
        expected: the expected sum in the window.
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
        """A stable id: the same at the beginning, at the end, and each time the same minutes are judged."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.kind}/{self.game}/{self.app_version}/{self.begun}"))

    @property
    def subject(self) -> tuple[SignalKind, str, str]:
        """The kind, game and version; only one signal at a time may have the same."""
        return self.kind, self.game, self.app_version


def fewer_by_chance(observed: Floats, expected: Floats) -> Floats:
    """Measure how unlikely it is that counts are this low by chance.

    Args:
        observed: float64 of any shape.
        expected: float64 of the same shape.

    Returns:
        float64 of that shape: minus the natural logarithm of an upper bound of the probability; 0 where `observed` is
        not below `expected`.

    Source: Chernoff's bound of the lower tail of a Poisson distribution, `exp(-(e - o + o ln(o/e)))`. It never
    overstates how unlikely the counts are, and allows fractional counts, such as those that were scaled to a Poisson
    distribution.
    """
    shrunk = np.maximum(expected, 1e-12)
    part = np.where(observed > 0, observed * np.log(np.maximum(observed, 1e-300) / shrunk), 0.0)
    return np.where(observed < expected, expected - observed + part, 0.0)


def more_by_chance(observed: float, expected: float) -> float:
    """Measure how unlikely it is that a count is this high by chance; see `fewer_by_chance`."""
    if observed <= expected:
        return 0.0
    shrunk = max(expected, 1e-12)
    return shrunk - observed + observed * math.log(observed / shrunk)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The bounds of usual behaviour.

    Attributes:
        tolerated: a fall to this fraction of the expected value is not a signal, however unlikely it is.
        sureness: a signal's probability by chance is under exp(-sureness), given a fall to `tolerated`.
        recovered: a fall is over at this fraction of the expected value.
        windows: the lengths of the windows in minutes, the shortest first.
        warm_up: the number of minutes before a new game is judged.
        common: the number of games with an expected value that is needed to detect a drop of the whole platform.
        error_factor: an error rate of up to this many times that of the other versions is not a signal.
        error_recovered: a rise is over at this many times that rate.
        new_version: the number of minutes for which a version counts as new.
        longest: the number of minutes after which a signal ends because its state counts as usual.
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
