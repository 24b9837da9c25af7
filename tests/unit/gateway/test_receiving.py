"""Bodies on their way in."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from services.gateway.errors import NotTakenError, TooLargeError, TooSlowError, UnreadableBodyError
from services.gateway.request_body import Receiver
from services.gateway.settings import BodyLimits

LIMITS = BodyLimits(size=100, on_their_way=250, unpacked=1000, events=10, patience=timedelta(seconds=0.05))


@dataclass
class Body:
    """A body that arrives in pieces; `cut` says that the rest never comes."""

    pieces: list[bytes]
    cut: bool = False
    read: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> bytes:
        """All pieces."""
        return b"".join([piece async for piece in self])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces."""
        for piece in self.pieces:
            self.read += len(piece)
            yield piece
        if self.cut:
            await self.ended.wait()


def received(body: Body, announced: str = "") -> bytes:
    return run(Receiver(LIMITS).receive(announced, body))


def run(what: Coroutine[Any, Any, bytes]) -> bytes:
    return asyncio.run(what)


@pytest.mark.parametrize("announced", ["", "100"])
def test_a_body_of_the_largest_size_is_taken(announced: str) -> None:
    assert received(Body([b"a" * 60, b"b" * 40]), announced) == b"a" * 60 + b"b" * 40


@pytest.mark.parametrize("length", ["101", "9" * 30, "-1", "x"])
def test_an_announced_length_over_the_limit_is_refused(length: str) -> None:
    with pytest.raises(TooLargeError):
        Receiver(LIMITS).check_announced(length)


def test_an_unannounced_body_over_the_limit_is_read_on_so_that_its_sender_sees_the_answer() -> None:
    body = Body([b"x" * 50] * 8)

    with pytest.raises(TooLargeError):
        received(body)

    assert body.read == 400


def test_an_endless_body_is_not_read_for_ever() -> None:
    body = Body([b"x" * 50] * 1000)

    with pytest.raises(TooLargeError):
        received(body)

    assert body.read == 850


@pytest.mark.parametrize("announced", ["", "100"])
def test_a_body_that_does_not_come_in_time_is_given_up(announced: str) -> None:
    with pytest.raises(TooSlowError):
        received(Body([b"x"], cut=True), announced)


def test_an_empty_body_is_none() -> None:
    with pytest.raises(UnreadableBodyError):
        received(Body([]))


def test_no_more_bodies_may_be_on_their_way_than_there_is_memory_for() -> None:
    receiver = Receiver(LIMITS)

    async def take_a_third() -> bytes:
        slow = [asyncio.create_task(receiver.receive("100", Body([], cut=True))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(NotTakenError):
            await receiver.receive("100", Body([b"x" * 100]))
        small = await receiver.receive("50", Body([b"x" * 50]))
        await asyncio.gather(*slow, return_exceptions=True)
        return small + await receiver.receive("100", Body([b"x" * 100]))

    assert run(take_a_third()) == b"x" * 150
