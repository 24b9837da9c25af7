"""How a request ends early: each error is one HTTP status, and none carries anything of a body.

RefusedError
├── UnreadableBodyError   400  the body is not what its headers say
├── UnknownSenderError    401  the signature does not hold
├── NotAllowedError       403  the key is good, and not for this
├── NoSuchPlayerError     404  the game has no such player, or no longer
├── TooSlowError          408  the body did not arrive in time
├── TooLargeError         413  the body, or what it unpacks to, is over the limit
├── UnsupportedTypeError  415  no such content type or encoding is taken
├── TooManyEventsError    429  the game is over its rate
└── NotTakenError         503  Kafka did not confirm; the same request may be sent again
"""

from datetime import timedelta
from enum import StrEnum
from http import HTTPStatus

import msgspec


class RefusedError(Exception):
    """The request is not taken; nothing of it is in Kafka unless the status is 503."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR
    retry_after: timedelta | None = None


class UnreadableBodyError(RefusedError):
    """The body as a whole can't be read."""

    status = HTTPStatus.BAD_REQUEST


class UnknownSenderError(RefusedError):
    """Nobody who may send has signed this, or not lately."""

    status = HTTPStatus.UNAUTHORIZED


class NotAllowedError(RefusedError):
    """The key is good, and not for this."""

    status = HTTPStatus.FORBIDDEN


class NoSuchPlayerError(RefusedError):
    """The game has no such player, or no longer."""

    status = HTTPStatus.NOT_FOUND


class TooSlowError(RefusedError):
    """The body did not arrive in time."""

    status = HTTPStatus.REQUEST_TIMEOUT


class TooLargeError(RefusedError):
    """The body, or what it unpacks to, is over the limit."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class UnsupportedTypeError(RefusedError):
    """A content type or encoding that is not taken."""

    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE


class TooManyEventsError(RefusedError):
    """The game is over its rate for now."""

    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, message: str, retry_after: timedelta) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotTakenError(RefusedError):
    """Kafka did not confirm, or has no room; the same request may be sent again."""

    status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self, message: str, retry_after: timedelta = timedelta(seconds=2)) -> None:
        super().__init__(message)
        self.retry_after = retry_after


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
