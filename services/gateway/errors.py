"""Why a request is refused (an HTTP status) or an event is rejected (a reason); no error has text from the body.

RefusedError
├── UnreadableBodyError        400  the body is not what its headers say
├── AuthenticationError        401  the signature does not hold
├── ForbiddenError             403  the key has another role
├── PlayerNotFoundError        404  the game has no such player (any more)
├── MethodNotAllowedError      405  the path has another method
├── BodyTimeoutError           408  the body did not arrive in time
├── BodyTooLargeError          413  the body, its decompressed size or its number of events is over the limit
├── UnsupportedMediaTypeError  415  the content type or encoding is not supported
├── RateLimitedError           429  the key is over its rate or quota
└── UnavailableError           503  Kafka or the vault is not available; the same request may be sent again
"""

from datetime import timedelta
from enum import StrEnum
from http import HTTPStatus

import msgspec


class RefusedError(Exception):
    """The request is refused; none of its events is in Kafka unless the status is 503."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR
    retry_after: timedelta | None = None


class UnreadableBodyError(RefusedError):
    """The body as a whole can't be read."""

    status = HTTPStatus.BAD_REQUEST


class AuthenticationError(RefusedError):
    """The key is unknown, the signature is wrong, or the timestamp is outside the window."""

    status = HTTPStatus.UNAUTHORIZED


class ForbiddenError(RefusedError):
    """The key is valid, but its role does not allow this request."""

    status = HTTPStatus.FORBIDDEN


class PlayerNotFoundError(RefusedError):
    """The game has no such player (any more)."""

    status = HTTPStatus.NOT_FOUND


class MethodNotAllowedError(RefusedError):
    """The path has another method."""

    status = HTTPStatus.METHOD_NOT_ALLOWED


class BodyTimeoutError(RefusedError):
    """The body did not arrive in time."""

    status = HTTPStatus.REQUEST_TIMEOUT


class BodyTooLargeError(RefusedError):
    """The body, its decompressed size or its number of events is over the limit."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class UnsupportedMediaTypeError(RefusedError):
    """The content type or encoding is not supported."""

    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE


class RateLimitedError(RefusedError):
    """The key is over its rate or its quota for now."""

    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, message: str, retry_after: timedelta) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UnavailableError(RefusedError):
    """Kafka or the vault does not answer, or too much waits for them; the same request may be sent again."""

    status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self, message: str, retry_after: timedelta = timedelta(seconds=2)) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class OverMemoryError(UnavailableError):
    """The requests of the game hold as much of the process's memory as they may, or wait for as much of its time."""

    def __init__(self) -> None:
        super().__init__("the game's requests take too much memory or time at once; send again later")


class Reason(StrEnum):
    """Why an event is rejected; sending it again unchanged gives the same result."""

    MALFORMED = "malformed"
    UNKNOWN_FIELD = "unknown_field"
    WRONG_TYPE = "wrong_type"
    NO_EVENT_ID = "no_event_id"
    NO_EVENT_NAME = "no_event_name"
    NO_GAMER_ID = "no_gamer_id"
    NO_EVENT_TIME = "no_event_time"
    IMPLAUSIBLE_EVENT_TIME = "implausible_event_time"
    IMPLAUSIBLE_AMOUNT = "implausible_amount"
    OTHER_GAME = "other_game"
    TOO_LONG = "too_long"
    TOO_LARGE = "too_large"


class EventRejectedError(Exception):
    """One event is rejected; `field` is a path in the contract, never a text from the event."""

    def __init__(self, reason: Reason, field: str = "") -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.field = field


class EventRejection(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rejected event, by its index in the body (from 0)."""

    index: int
    reason: Reason
    field: str = ""
