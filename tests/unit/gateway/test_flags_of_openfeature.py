"""OpenFeature's own client for Python gets its answers from the gateway."""

import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import Reason
from requests.adapters import BaseAdapter
from requests.auth import AuthBase
from requests.structures import CaseInsensitiveDict

from services.sdk import Credentials
from tests.unit.gateway.flag_requests import CONDITIONAL, GAME, OVER, RUNNING, SECRET, SLOW_KEY, Flags

PLAYER = EvaluationContext("player-1", {"platform": "ios", "level": 3})


class Signed(AuthBase):
    """Signs each request, as a game's server would."""

    def __init__(self, key: str = GAME, secret: str = SECRET) -> None:
        self._credentials = Credentials(key, secret)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """The signed request."""
        assert isinstance(request.body, bytes)
        request.headers.update(self._credentials.headers(request.body, time.time()))
        return request


class ToEndpoint(BaseAdapter):
    """Sends requests to the endpoint, without a socket."""

    def __init__(self, flags: Flags) -> None:
        super().__init__()
        self._flags = flags

    def send(self, request: requests.PreparedRequest, *_args: object, **_options: object) -> requests.Response:
        """The endpoint's response."""
        headers = {name.lower(): str(value) for name, value in request.headers.items()}
        assert isinstance(request.body, bytes)
        answer = self._flags.send(str(request.method), request.path_url, headers, request.body)
        response = requests.Response()
        response.status_code, response.headers = int(answer.status), CaseInsensitiveDict(answer.headers)
        response.raw, response.url, response.request = BytesIO(answer.body), str(request.url), request
        return response

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def provider(tmp_path: Path) -> OFREPProvider:
    provider = OFREPProvider("http://gateway")
    provider.session.mount("http://gateway", ToEndpoint(Flags.open(tmp_path)))
    provider.session.auth = Signed()
    return provider


@pytest.fixture
def client(provider: OFREPProvider) -> Iterator[OpenFeatureClient]:
    api.set_provider_and_wait(provider)
    yield api.get_client()
    api.clear_providers()


def test_it_gets_a_players_variant_with_the_reason(client: OpenFeatureClient) -> None:
    details = client.get_string_details(RUNNING, "none", PLAYER)

    assert (details.value, details.variant, details.reason) == ("offer", "offer", Reason.SPLIT)
    assert details.flag_metadata == {"exposure": True}
    assert client.get_string_value(CONDITIONAL, "none", PLAYER) in {"control", "offer"}


@pytest.mark.parametrize(("flag", "reason"), [(OVER, Reason.DISABLED), (CONDITIONAL, Reason.DEFAULT)])
def test_it_gets_the_control_of_an_experiment_without_the_player(
    client: OpenFeatureClient, flag: str, reason: Reason
) -> None:
    details = client.get_string_details(flag, "none", EvaluationContext("player-1"))

    assert (details.value, details.reason, details.flag_metadata) == ("control", reason, {})


@pytest.mark.parametrize(
    ("flag", "context", "code"),
    [
        ("unknown", PLAYER, ErrorCode.FLAG_NOT_FOUND),
        (RUNNING, EvaluationContext(), ErrorCode.TARGETING_KEY_MISSING),
        (RUNNING, EvaluationContext(attributes={"targetingKey": 3}), ErrorCode.INVALID_CONTEXT),
    ],
)
def test_it_uses_its_default_and_names_the_error(
    client: OpenFeatureClient, flag: str, context: EvaluationContext, code: ErrorCode
) -> None:
    details = client.get_string_details(flag, "default", context)

    assert (details.value, details.error_code, details.reason) == ("default", code, Reason.ERROR)


def test_it_stops_asking_until_the_time_that_the_gateway_names(
    provider: OFREPProvider, client: OpenFeatureClient
) -> None:
    provider.session.auth = Signed(SLOW_KEY)
    details: Any = SimpleNamespace(error_code=None)
    for _ in range(10):
        details = client.get_string_details(RUNNING, "default", PLAYER)

    assert (details.value, details.error_code) == ("default", ErrorCode.GENERAL)
    assert provider.retry_after is not None


def test_a_wrong_secret_is_unauthorized(provider: OFREPProvider, client: OpenFeatureClient) -> None:
    provider.session.auth = Signed(secret="another-secret-of-thirty-two-letters")  # noqa: S106 # only tests know it
    details = client.get_string_details(RUNNING, "default", PLAYER)

    assert (details.value, details.error_message) == ("default", "unauthorized")
