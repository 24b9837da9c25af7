"""Who comes alone is served at once, who comes with many is gathered; nobody waits for another's trouble."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from services.gateway.batching import Gathering, Pace

PACE = Pace(pause=timedelta(milliseconds=20), enough=10)


class Doubling:
    """Work that doubles numbers, and can't bear a zero."""

    def __init__(self) -> None:
        self.rounds: list[list[int]] = []

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.rounds.append(list(numbers))
        if 0 in numbers:
            raise ZeroDivisionError
        return [2 * number for number in numbers]


def test_who_comes_alone_is_served_at_once_and_who_comes_soon_after_is_gathered() -> None:
    work = Doubling()

    async def ask() -> tuple[list[int], float]:
        gathering = Gathering(work, PACE)
        loop = asyncio.get_running_loop()
        start = loop.time()
        first = await gathering.ask(1, 1)
        alone = loop.time() - start
        return [first, *await asyncio.gather(*(gathering.ask(number, 1) for number in (2, 3, 4)))], alone

    answers, seconds_alone = asyncio.run(ask())

    assert answers == [2, 4, 6, 8]
    assert work.rounds == [[1], [2, 3, 4]]
    assert seconds_alone < PACE.pause.total_seconds()


def test_when_enough_has_gathered_nobody_waits_any_longer() -> None:
    work = Doubling()

    async def ask() -> None:
        gathering = Gathering(work, Pace(pause=timedelta(hours=1), enough=10))
        await gathering.ask(1, 1)
        await asyncio.gather(*(gathering.ask(number, 4) for number in (2, 3, 4)))

    asyncio.run(asyncio.wait_for(ask(), timeout=10))

    assert work.rounds == [[1], [2, 3, 4]]


def test_one_that_can_not_be_served_holds_up_no_other() -> None:
    async def ask() -> list[int | BaseException]:
        gathering = Gathering(Doubling(), PACE)
        return await asyncio.gather(*(gathering.ask(number, 1) for number in (1, 0, 2)), return_exceptions=True)

    first, second, third = asyncio.run(ask())

    assert (first, third) == (2, 4)
    assert isinstance(second, ZeroDivisionError)


def test_who_has_gone_away_is_no_trouble_to_the_others() -> None:
    async def ask() -> int:
        gathering = Gathering(Doubling(), PACE)
        gone = asyncio.ensure_future(gathering.ask(1, 1))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        return await gathering.ask(2, 1)

    assert asyncio.run(ask()) == 4
