"""The service's HTTP responses; those of the API have a JSON body."""

from dataclasses import dataclass
from http import HTTPStatus
from math import ceil

import msgspec

from services.gateway.errors import EventRejection, RefusedError

Headers = list[tuple[str, str]]
_JSON: Headers = [("content-type", "application/json")]


class _BatchResult(msgspec.Struct, frozen=True):
    accepted: int
    rejected: list[EventRejection]


class _Problem(msgspec.Struct, frozen=True):
    error: str


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response."""

    status: HTTPStatus
    headers: Headers
    body: bytes


def batch_response(accepted: int, rejected: list[EventRejection]) -> Response:
    """Return status 200: the in-sync replicas have the accepted events."""
    return Response(HTTPStatus.OK, _JSON, msgspec.json.encode(_BatchResult(accepted, rejected)))


def refusal_response(error: RefusedError) -> Response:
    """Return the status of a refused request, with `retry-after` in whole seconds if it may be sent again."""
    return Response(error.status, [*_JSON, *retry_headers(error)], msgspec.json.encode(_Problem(str(error))))


def retry_headers(error: RefusedError) -> Headers:
    """Return `retry-after` in whole seconds if the request may be sent again."""
    if error.retry_after is None:
        return []
    return [("retry-after", str(max(1, ceil(error.retry_after.total_seconds()))))]


def status_response(status: HTTPStatus) -> Response:
    """Return a status with its standard phrase as the error text."""
    return Response(status, _JSON, msgspec.json.encode(_Problem(status.phrase)))


def method_not_allowed(allowed: str) -> Response:
    """Return status 405; `allowed` is the value of the header `allow`."""
    status = HTTPStatus.METHOD_NOT_ALLOWED
    return Response(status, [*_JSON, ("allow", allowed)], msgspec.json.encode(_Problem(status.phrase)))


def content_response(content_type: str, body: bytes, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Return a response with a given body: pages, health checks, metrics, exports."""
    return Response(status, [("content-type", content_type)], body)
