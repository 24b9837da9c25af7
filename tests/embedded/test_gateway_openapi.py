"""The gateway does what its OpenAPI document says, with whatever requests the document lets one think of."""

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
from tests.embedded.gateway import KEY, SECRET, SUPPORT_KEY, Gateway
from tests.embedded.parcels import packed, protobuf_bodies
from tools.embedded.ports import HOST
from tools.embedded.service import REPOSITORY

DOCUMENT = REPOSITORY / "services/gateway/pages/openapi.yaml"
# A bad event among good ones is no bad request: the answer is 200 and names it. That Kafka is slow for a moment is no
# fault: 503 is one of the answers that the document names, and no other of the fives is.
_DOES_NOT_HOLD: list[CheckFunction] = [negative_data_rejection, not_a_server_error]
_ANSWER_SECONDS = 20

schemathesis.openapi.media_type("application/x-protobuf", protobuf_bodies(st.just).filter(bool))
described = schemathesis.openapi.from_path(DOCUMENT)


class Signed(AuthBase):
    """Packs the body as its header says, and signs what is to be signed; a header that was left out stays so."""

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """The request as a game would send it, or as support staff would."""
        written = request.body.encode() if isinstance(request.body, str) else request.body
        assert written is None or isinstance(written, bytes)
        request.body = packed(written or b"", str(request.headers.get("content-encoding")))
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
    """The service."""
    return open_gateway()


def _make_timely(body: object) -> None:
    """Have the events of a body happen now: those of any moment are rejected, nearly all of them."""
    for event in body.get("events", []) if isinstance(body, dict) else []:
        event["event_time"] = datetime.now(UTC).isoformat()


@described.parametrize()
@fuzzing(few=60)
def test_each_answer_is_one_that_the_document_names(case: "schemathesis.Case[Any]", gateway: Gateway) -> None:
    if case.meta is not None and case.meta.generation.mode.is_positive:
        _make_timely(case.body)

    case.call_and_validate(
        base_url=f"http://{HOST}:{gateway.port}", auth=Signed(), excluded_checks=_DOES_NOT_HOLD, timeout=_ANSWER_SECONDS
    )


def test_the_document_is_the_one_that_is_served(gateway: Gateway) -> None:
    assert gateway.get("/openapi.yaml").body == DOCUMENT.read_bytes()
