"""What is wrong with an event, if anything."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tools.simulator.spec import Shares

_HOUR_US = 3600 * 1_000_000
_LATE_HOURS = (2, 72)
_FUTURE_HOURS = (1, 20)


class Fate(IntEnum):
    """The one way in which an event is sent."""

    ON_TIME = 0
    LATE = 1
    FUTURE = 2
    DUPLICATED = 3
    UNDECODABLE = 4
    UNKNOWN_GAME = 5
    NULL_TIME = 6


@dataclass(frozen=True, slots=True)
class Fates:
    """Each event's fate, and how far its time lies from where it would be."""

    fate: npt.NDArray[np.int8]
    shift_us: npt.NDArray[np.int64]


def draw_fates(shares: Shares, count: int, random: np.random.Generator) -> Fates:
    """Decide the fate of each event by its share."""
    edges = np.cumsum(
        [shares.late, shares.future, shares.duplicate, shares.undecodable, shares.unknown_game, shares.null_time]
    )
    # A number beyond the last edge wraps around to the good events, which are fate 0.
    fate = (np.searchsorted(edges, random.random(count), side="right") + 1) % len(Fate)
    shift_us = np.zeros(count, dtype=np.int64)
    for which, hours, direction in ((Fate.LATE, _LATE_HOURS, -1), (Fate.FUTURE, _FUTURE_HOURS, 1)):
        hit = np.flatnonzero(fate == which)
        shift_us[hit] = direction * (random.uniform(*hours, len(hit)) * _HOUR_US).astype(np.int64)
    return Fates(fate=fate.astype(np.int8), shift_us=shift_us)
