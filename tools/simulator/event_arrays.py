"""Events before they have a text or a clock: numbers only, one row per event."""

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

# A stretch, or one flag per event, or the events' numbers.
Rows: TypeAlias = slice | npt.NDArray[np.bool_] | npt.NDArray[np.int64]


EVENT_NAMES = (
    "session_start",
    "level_started",
    "level_completed",
    "level_failed",
    "purchase",
    "ad_viewed",
    "error",
    "session_end",
)


class Happening(IntEnum):
    """What an event is; the number is its place in `EVENT_NAMES`."""

    SESSION_START = 0
    LEVEL_STARTED = 1
    LEVEL_COMPLETED = 2
    LEVEL_FAILED = 3
    PURCHASE = 4
    AD_VIEWED = 5
    ERROR = 6
    SESSION_END = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Things that happened, in the order in which they are sent, in parallel arrays.

    `position` counts the run's events; `delay_us` is how long the event waited in its device; `schema` is a version of
    the contract; `product` and `error` are -1 where there is none; `game` beyond the spec's games is an unknown one.
    """

    position: npt.NDArray[np.int64]
    event_id: npt.NDArray[np.uint8]
    happening: npt.NDArray[np.int8]
    player: npt.NDArray[np.int64]
    game: npt.NDArray[np.int16]
    session: npt.NDArray[np.uint8]
    schema: npt.NDArray[np.int8]
    release: npt.NDArray[np.int8]
    level: npt.NDArray[np.int32]
    score: npt.NDArray[np.int32]
    product: npt.NDArray[np.int8]
    quantity: npt.NDArray[np.int32]
    error: npt.NDArray[np.int8]
    response_ms: npt.NDArray[np.int64]
    delay_us: npt.NDArray[np.int64]
    fate: npt.NDArray[np.int8]
    shift_us: npt.NDArray[np.int64]
    salt: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        """Count the events."""
        return len(self.position)

    def __getitem__(self, rows: Rows) -> "Moments":
        """Give some of the events."""
        return Moments(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})
