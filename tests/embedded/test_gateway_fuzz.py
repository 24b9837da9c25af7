"""The gateway responds to any request without an internal error, and keeps nothing of it."""

from collections.abc import Callable

import pytest
from hypothesis import given

from tests.embedded.effort import fuzzing
from tests.embedded.fuzzed_requests import MARK, FuzzedRequest, fuzzed_requests
from tests.embedded.gateway import Gateway, Reply, body_of, events
from tests.embedded.topic_records import records_in
from tools.embedded import EmbeddedKafka

# Differences that the allocator causes.
_NOISE_MIB = 8
_REPETITIONS = 6
_REFUSALS = frozenset({400, 401, 413, 415})


@pytest.fixture(scope="module")
def gateway(open_gateway: Callable[..., Gateway]) -> Gateway:
    """The service with a small player cache, so that new players need no memory; it locks no client out."""
    return open_gateway(INGEST_PLAYER_CACHE_BYTES="10240")


def sent(gateway: Gateway, request: FuzzedRequest) -> Reply:
    return gateway.send(request.body, **request.headers)


@pytest.mark.slow
def test_any_body_is_accepted_or_refused_and_never_shown(gateway: Gateway, kafka: EmbeddedKafka) -> None:
    before, accepted = len(records_in(kafka, gateway.topic)), []

    @fuzzing()
    @given(fuzzed_requests())
    def send(request: FuzzedRequest) -> None:
        reply = sent(gateway, request)
        if reply.status == 200:
            accepted.append(reply.result.accepted)
        else:
            assert reply.status in _REFUSALS
        assert MARK.encode() not in reply.body

    send()

    assert gateway.process.is_running()
    assert any(accepted)
    assert len(records_in(kafka, gateway.topic)) == before + sum(accepted)
    assert MARK.encode() not in gateway.log()
    assert b"Traceback" not in gateway.log()


@pytest.mark.slow
def test_repeated_bodies_do_not_grow_the_memory(gateway: Gateway) -> None:
    drawn: list[FuzzedRequest] = []

    @fuzzing()
    @given(fuzzed_requests())
    def draw(request: FuzzedRequest) -> None:
        drawn.append(request)

    draw()
    held = []
    for _ in range(_REPETITIONS):
        for request in drawn:
            sent(gateway, request)
        held.append(gateway.resident_mib())

    # The first repetitions fill caches, pools and the buffers of connections.
    assert held[-1] - held[len(held) // 2 - 1] < _NOISE_MIB, held
    assert gateway.send(body_of(events(1))).result.accepted == 1
