"""Large bodies are refused before they fill the memory."""

import pytest

from services.gateway.errors import BodyTooLargeError
from services.gateway.events.json_events import JsonEvents
from tests.unit.gateway.events import submitted

MIB = 2**20


@pytest.mark.parametrize("piece", [b"{},", b"[],", b"[[", b"0,"])
def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(piece: bytes) -> None:
    body = b'{"events":[' + piece * (2 * MIB // len(piece))

    with pytest.raises(BodyTooLargeError):
        JsonEvents(submitted()).memory(body, 5000)
