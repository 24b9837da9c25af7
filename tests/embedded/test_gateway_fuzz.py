"""Whatever is sent to the gateway: it answers, never with a fault of its own, and nothing of it sticks."""

from collections.abc import Callable

import pytest
from hypothesis import given

from tests.embedded.effort import fuzzing
from tests.embedded.gateway import Gateway, Reply, body_of, events
from tests.embedded.parcels import MARK, Parcel, parcels
from tests.embedded.topic_records import records_in
from tools.embedded import EmbeddedKafka

# What an allocator may do with the same memory from round to round.
_NOISE_MIB = 8
_ROUNDS = 6
_REFUSALS = frozenset({400, 401, 413, 415})


@pytest.fixture(scope="module")
def gateway(open_gateway: Callable[..., Gateway]) -> Gateway:
    """The service, which remembers so few players that new ones cost it no memory."""
    return open_gateway(INGEST_REMEMBERED_PLAYERS="10")


def sent(gateway: Gateway, parcel: Parcel) -> Reply:
    """The answer to a parcel."""
    return gateway.send(parcel.body, **parcel.headers)


def test_a_body_of_any_bytes_is_taken_or_refused_and_never_told(gateway: Gateway, kafka: EmbeddedKafka) -> None:
    before, accepted = len(records_in(kafka, gateway.topic)), []

    @fuzzing()
    @given(parcels())
    def send(parcel: Parcel) -> None:
        reply = sent(gateway, parcel)
        if reply.status == 200:
            accepted.append(reply.taken.accepted)
        else:
            assert reply.status in _REFUSALS
        assert MARK.encode() not in reply.body

    send()

    assert gateway.process.is_running()
    assert any(accepted)
    assert len(records_in(kafka, gateway.topic)) == before + sum(accepted)
    assert MARK.encode() not in gateway.log()
    assert b"Traceback" not in gateway.log()


def test_the_same_bodies_again_and_again_cost_no_memory(gateway: Gateway) -> None:
    drawn: list[Parcel] = []

    @fuzzing()
    @given(parcels())
    def draw(parcel: Parcel) -> None:
        drawn.append(parcel)

    draw()
    held = []
    for _ in range(_ROUNDS):
        for parcel in drawn:
            sent(gateway, parcel)
        held.append(gateway.resident_mib())

    # The first rounds fill what is filled once: caches, pools, the buffers of connections.
    assert held[-1] - held[len(held) // 2 - 1] < _NOISE_MIB, held
    assert gateway.send(body_of(events(1))).taken.accepted == 1
