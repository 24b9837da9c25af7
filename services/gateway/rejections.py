"""What becomes of the events of a body: each is taken, or rejected with a reason."""

from enum import StrEnum

import msgspec


class Reason(StrEnum):
    """Why an event is rejected; sending it again as it is changes nothing."""

    MALFORMED = "malformed"
    UNKNOWN_FIELD = "unknown_field"
    WRONG_TYPE = "wrong_type"
    NO_EVENT_ID = "no_event_id"
    NO_EVENT_NAME = "no_event_name"
    NO_GAMER_ID = "no_gamer_id"
    NO_EVENT_TIME = "no_event_time"
    IMPLAUSIBLE_EVENT_TIME = "implausible_event_time"
    OTHER_GAME = "other_game"
    TOO_LARGE = "too_large"


class RejectedError(Exception):
    """One event is not taken; `field` is a path in the contract, never what the sender wrote."""

    def __init__(self, reason: Reason, field: str = "") -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.field = field


class Rejection(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event that is not taken, by its place in the body, from 0."""

    index: int
    reason: Reason
    field: str = ""
