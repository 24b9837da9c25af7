"""Turns of the event loop: large bodies of one game wait for each other, for a bounded time."""

import asyncio
import time

import pytest

from services.gateway.errors import OverMemoryError
from services.gateway.limits import turns as turns_module
from services.gateway.limits.turns import Turns

REQUESTS, TURN_SECONDS = 300, 0.0005


async def take_turn(turns: Turns, game: str, order: list[str]) -> bool:
    """Return True if a request of the game got its turn, which takes some time; False if it was refused."""
    try:
        async with turns.turn(game):
            # As reading a large body does, it lets nothing else run.
            time.sleep(TURN_SECONDS)
            order.append(game)
    except OverMemoryError:
        return False
    return True


def test_a_game_with_many_requests_is_refused_those_that_would_wait_for_long_and_another_game_waits_for_one_turn() -> (
    None
):
    order: list[str] = []

    async def run() -> list[bool]:
        turns = Turns()
        flood = [asyncio.create_task(take_turn(turns, "flood", order)) for _ in range(REQUESTS)]
        await asyncio.sleep(0)
        assert await take_turn(turns, "other", order)
        return [await each for each in flood]

    granted = asyncio.run(run())

    # By the time that a turn is expected to take: none was taken before.
    assert 100 <= granted.count(True) <= 102
    assert order.index("other") <= 3


def test_fast_turns_let_more_requests_wait() -> None:
    order: list[str] = []

    async def run() -> list[bool]:
        turns = Turns()
        for _ in range(100):
            assert await take_turn(turns, "game", order)
        return await asyncio.gather(*(take_turn(turns, "game", order) for _ in range(REQUESTS)))

    assert all(asyncio.run(run()))


def test_a_turn_that_fails_is_over_for_the_next_one() -> None:
    async def run() -> None:
        turns = Turns()
        for _ in range(3):
            with pytest.raises(ValueError, match="unreadable"):
                async with turns.turn("game"):
                    raise ValueError("unreadable")

    asyncio.run(run())


def test_a_request_whose_wait_was_longer_than_expected_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "_MOST_WAIT_SECONDS", 0.2)
    order: list[str] = []

    async def run() -> list[bool]:
        turns = Turns()
        async with turns.turn("game"):
            return await asyncio.gather(*(take_turn(turns, "game", order) for _ in range(3)))

    assert asyncio.run(run()) == [False] * 3
    assert order == []
