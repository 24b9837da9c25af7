"""Each request is counted with its status, also one that fails for a fault of the gateway itself."""

import asyncio
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from services.gateway.events.endpoint import EventsEndpoint

MISSING_PARTS: list[Any] = [None] * len(fields(EventsEndpoint))


def requests_with(status: int) -> float:
    return REGISTRY.get_sample_value("gamelake_ingest_requests_total", {"status": str(status)}) or 0


def test_an_error_of_the_gateway_itself_counts_as_500() -> None:
    # Without its parts an endpoint fails as after a change of a library: with an error that no code expects.
    endpoint = EventsEndpoint(*MISSING_PARTS)
    before = requests_with(500)

    with pytest.raises(AttributeError):
        asyncio.run(endpoint.respond(SimpleNamespace(headers={}, client="127.0.0.1:1"), None))

    assert requests_with(500) == before + 1
