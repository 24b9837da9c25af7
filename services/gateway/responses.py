"""What the service says, as JSON: what became of a body, or why it was refused."""

from dataclasses import dataclass
from http import HTTPStatus
from math import ceil

import msgspec

from services.gateway.errors import RefusedError, Rejection

Headers = list[tuple[str, str]]
_JSON: Headers = [("content-type", "application/json")]


class _Taken(msgspec.Struct, frozen=True):
    accepted: int
    rejected: list[Rejection]


class _Refused(msgspec.Struct, frozen=True):
    error: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer."""

    status: HTTPStatus
    headers: Headers
    body: bytes


def taken(accepted: int, rejected: list[Rejection]) -> Answer:
    """The events were looked at; those that may pass are in Kafka."""
    return Answer(HTTPStatus.OK, _JSON, msgspec.json.encode(_Taken(accepted, rejected)))


def refused(error: RefusedError) -> Answer:
    """The request was not taken."""
    headers = _JSON
    if error.retry_after is not None:
        headers = [*_JSON, ("retry-after", str(max(1, ceil(error.retry_after.total_seconds()))))]
    return Answer(error.status, headers, msgspec.json.encode(_Refused(str(error))))


def problem(status: HTTPStatus) -> Answer:
    """No such page, or a fault of our own."""
    return Answer(status, _JSON, msgspec.json.encode(_Refused(status.phrase)))


def wrong_method(allowed: str) -> Answer:
    """The page is there, and has another method."""
    status = HTTPStatus.METHOD_NOT_ALLOWED
    return Answer(status, [*_JSON, ("allow", allowed)], msgspec.json.encode(_Refused(status.phrase)))


def page(content_type: str, body: bytes, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    """A page for a person, or for a program that asks how the service is."""
    return Answer(status, [("content-type", content_type)], body)
