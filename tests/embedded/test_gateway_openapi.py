"""The gateway behaves as its OpenAPI document says, for generated requests."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import schemathesis
from hypothesis import strategies as st
from requests import PreparedRequest
from requests.auth import AuthBase
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.specs.openapi.checks import negative_data_rejection

from services.gateway.authentication import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from services.gateway.support_endpoint import PLAYERS_PATH, signed_text
from tests.embedded.effort import fuzzing
from tests.embedded.fuzzed_requests import compressed, protobuf_bodies
from tests.embedded.gateway import KEY, SECRET, SUPPORT_KEY, Gateway
from tools.embedded.ports import HOST
from tools.embedded.service import REPOSITORY

DOCUMENT = REPOSITORY / "services/gateway/pages/openapi.yaml"
# An invalid event among valid ones does not make the request invalid: the response is 200 and lists it. A 503 while
# Kafka is slow is not an error: the document has it, and no other 5xx.
_EXCLUDED_CHECKS: list[CheckFunction] = [negative_data_rejection, not_a_server_error]
_TIMEOUT_SECONDS = 20

schemathesis.openapi.media_type("application/x-protobuf", protobuf_bodies(st.just).filter(bool))
described = schemathesis.openapi.from_path(DOCUMENT)


class Signed(AuthBase):
    """Compresses the body as its header says, and signs the request; a missing header stays missing."""

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """The request as a game or support staff would send it."""
        body = request.body.encode() if isinstance(request.body, str) else request.body
        assert body is None or isinstance(body, bytes)
        request.body = compressed(body or b"", str(request.headers.get("content-encoding")))
        path = unquote(urlsplit(str(request.url)).path)
        key, signed = KEY, request.body
        if path.startswith(PLAYERS_PATH):
            key, signed = SUPPORT_KEY, signed_text(str(request.method), path.removeprefix(PLAYERS_PATH))
        timestamp = str(int(time.time()))
        right = {
            "content-length": str(len(request.body)),
            KEY_HEADER: key,
            TIMESTAMP_HEADER: timestamp,
            SIGNATURE_HEADER: sign(SECRET.encode(), timestamp, signed),
        }
        request.headers.update({name: value for name, value in right.items() if name in request.headers})
        return request


@pytest.fixture(scope="module")
def gateway(open_gateway: Callable[..., Gateway]) -> Gateway:
    return open_gateway()


def _make_timely(body: object) -> None:
    """Set the events' time to now: most random times are rejected."""
    for event in body.get("events", []) if isinstance(body, dict) else []:
        event["event_time"] = datetime.now(UTC).isoformat()


@pytest.mark.slow
@described.parametrize()
@fuzzing(few=60)
def test_each_response_is_one_of_the_document(case: "schemathesis.Case[Any]", gateway: Gateway) -> None:
    if case.meta is not None and case.meta.generation.mode.is_positive:
        _make_timely(case.body)

    case.call_and_validate(
        base_url=f"http://{HOST}:{gateway.port}",
        auth=Signed(),
        excluded_checks=_EXCLUDED_CHECKS,
        timeout=_TIMEOUT_SECONDS,
    )


def test_the_document_is_served_unchanged(gateway: Gateway) -> None:
    assert gateway.get("/openapi.yaml").body == DOCUMENT.read_bytes()
