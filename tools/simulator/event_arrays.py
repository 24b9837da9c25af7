"""Events as numpy arrays of codes, one row per event; texts and timestamps are added when they are encoded."""

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

# A slice, one flag per event, or indices of events.
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
    "refund",
    "subscription_started",
    "subscription_renewed",
    "subscription_cancelled",
    "subscription_in_grace",
)


class EventKind(IntEnum):
    """The kind of an event; the value is the index of its name in `EVENT_NAMES`."""

    SESSION_START = 0
    LEVEL_STARTED = 1
    LEVEL_COMPLETED = 2
    LEVEL_FAILED = 3
    PURCHASE = 4
    AD_VIEWED = 5
    ERROR = 6
    SESSION_END = 7
    REFUND = 8
    SUBSCRIPTION_STARTED = 9
    SUBSCRIPTION_RENEWED = 10
    SUBSCRIPTION_CANCELLED = 11
    SUBSCRIPTION_IN_GRACE = 12


SUBSCRIPTION_SALES = (EventKind.SUBSCRIPTION_STARTED, EventKind.SUBSCRIPTION_RENEWED)
SUBSCRIPTION_KINDS = (*SUBSCRIPTION_SALES, EventKind.SUBSCRIPTION_CANCELLED, EventKind.SUBSCRIPTION_IN_GRACE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventArrays:
    """Events in the order in which they are sent, in parallel arrays of the same length.

    Attributes:
        position: index of the event in the run.
        event_id: shape (n, 16), random bytes of the UUID.
        kind: `EventKind`.
        player: index into the `Population`.
        game: index into the spec's games; larger ones are unknown games.
        session: shape (n, 6), random bytes of the session id.
        schema: version of the contract, from 1.
        release: index into `RELEASES`.
        level: the player's level.
        score: change of the score, in points.
        product: index into `PRODUCTS`, -1 for none.
        quantity: items bought or refunded.
        order: number of the order in its session, of purchases and refunds.
        error: index into `ERRORS`, -1 for none.
        response_ms: response time of a network error.
        delay_us: how long the event waited on its device.
        defect: `Defect`.
        shift_us: how far the event time is moved by a LATE or FUTURE defect.
        salt: random number for choices that need no draw of their own.
    """

    position: npt.NDArray[np.int64]
    event_id: npt.NDArray[np.uint8]
    kind: npt.NDArray[np.int8]
    player: npt.NDArray[np.int64]
    game: npt.NDArray[np.int16]
    session: npt.NDArray[np.uint8]
    schema: npt.NDArray[np.int8]
    release: npt.NDArray[np.int8]
    level: npt.NDArray[np.int32]
    score: npt.NDArray[np.int32]
    product: npt.NDArray[np.int8]
    quantity: npt.NDArray[np.int32]
    order: npt.NDArray[np.int8]
    error: npt.NDArray[np.int8]
    response_ms: npt.NDArray[np.int64]
    delay_us: npt.NDArray[np.int64]
    defect: npt.NDArray[np.int8]
    shift_us: npt.NDArray[np.int64]
    salt: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        """Number of events."""
        return len(self.position)

    def __getitem__(self, rows: Rows) -> "EventArrays":
        """Select events."""
        return EventArrays(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})
