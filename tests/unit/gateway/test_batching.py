"""Concurrent requests are batched; an error of one is not the error of another."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import timedelta

import pytest

from services.gateway.events.batching import BatchingPace, LoopBatcher, ThreadBatcher

PACE = BatchingPace(pause=timedelta(milliseconds=20), flush_size=10)


class Doubling:
    """Work that doubles numbers, and fails for zero."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.batches.append(list(numbers))
        if 0 in numbers:
            raise ZeroDivisionError
        return [2 * number for number in numbers]


def test_a_lone_request_runs_at_once_and_later_ones_are_batched() -> None:
    work = Doubling()

    async def ask() -> tuple[list[int], float]:
        batcher = LoopBatcher(work, PACE)
        loop = asyncio.get_running_loop()
        start = loop.time()
        first = await batcher.submit(1, 1)
        alone = loop.time() - start
        return [first, *await asyncio.gather(*(batcher.submit(number, 1) for number in (2, 3, 4)))], alone

    results, seconds_alone = asyncio.run(ask())

    assert results == [2, 4, 6, 8]
    assert work.batches == [[1], [2, 3, 4]]
    assert seconds_alone < PACE.pause.total_seconds()


def test_a_batch_runs_early_when_the_flush_size_is_reached() -> None:
    work = Doubling()

    async def ask() -> None:
        batcher = LoopBatcher(work, BatchingPace(pause=timedelta(hours=1), flush_size=10))
        await batcher.submit(1, 1)
        await asyncio.gather(*(batcher.submit(number, 4) for number in (2, 3, 4)))

    asyncio.run(asyncio.wait_for(ask(), timeout=10))

    assert work.batches == [[1], [2, 3, 4]]


def test_the_pause_after_a_small_batch_is_short() -> None:
    work = Doubling()
    pace = BatchingPace(pause=timedelta(hours=1), flush_size=10_000_000, full_pause_size=1_000_000)

    async def ask() -> None:
        batcher = LoopBatcher(work, pace)
        for number in (1, 2, 3):
            await batcher.submit(number, 1)
        large = await batcher.submit(4, 1_000_000)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(batcher.submit(large, 1), timeout=0.1)

    asyncio.run(asyncio.wait_for(ask(), timeout=10))

    assert work.batches == [[1], [2], [3], [4]]


def test_a_failing_request_does_not_fail_the_others_of_its_batch() -> None:
    async def ask() -> list[int | BaseException]:
        batcher = LoopBatcher(Doubling(), PACE)
        return await asyncio.gather(*(batcher.submit(number, 1) for number in (1, 0, 2)), return_exceptions=True)

    first, second, third = asyncio.run(ask())

    assert (first, third) == (2, 4)
    assert isinstance(second, ZeroDivisionError)


def test_a_cancelled_request_does_not_affect_the_others() -> None:
    async def ask() -> int:
        batcher = LoopBatcher(Doubling(), PACE)
        gone = asyncio.ensure_future(batcher.submit(1, 1))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        return await batcher.submit(2, 1)

    assert asyncio.run(ask()) == 4


class BlockedDoubling:
    """Work that doubles numbers, in batches that wait for `go_on`, and fails for 13."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go_on = threading.Event()

    def __call__(self, numbers: Sequence[int]) -> list[int | Exception]:
        """Run one batch."""
        self.batches.append(list(numbers))
        assert self.go_on.wait(10)
        return [ValueError("13") if each == 13 else 2 * each for each in numbers]


async def submit_while_a_batch_runs(
    work: BlockedDoubling, numbers: Sequence[int], *, max_batch: int = 100
) -> list[int | BaseException]:
    batcher: ThreadBatcher[int, int] = ThreadBatcher(work, max_batch=max_batch)
    first = asyncio.create_task(batcher.submit(1, size=1))
    while not work.batches:
        await asyncio.sleep(0)
    others = [asyncio.create_task(batcher.submit(each, size=1)) for each in numbers]
    await asyncio.sleep(0)
    work.go_on.set()
    return await asyncio.gather(first, *others, return_exceptions=True)


def test_requests_that_come_while_a_batch_runs_share_the_next() -> None:
    work = BlockedDoubling()

    assert asyncio.run(submit_while_a_batch_runs(work, range(2, 10))) == [2 * each for each in range(1, 10)]
    assert work.batches == [[1], list(range(2, 10))]


def test_a_batch_is_no_larger_than_its_limit() -> None:
    work = BlockedDoubling()

    asyncio.run(submit_while_a_batch_runs(work, range(2, 10), max_batch=3))

    assert work.batches == [[1], [2, 3, 4], [5, 6, 7], [8, 9]]


def test_an_error_of_one_request_is_not_the_error_of_another() -> None:
    results = asyncio.run(submit_while_a_batch_runs(BlockedDoubling(), [12, 13, 14]))

    assert [results[1], results[3]] == [24, 28]
    assert isinstance(results[2], ValueError)


def test_a_cancelled_request_is_left_out_of_its_batch() -> None:
    work = BlockedDoubling()

    async def run() -> int:
        batcher: ThreadBatcher[int, int] = ThreadBatcher(work, max_batch=9)
        first = asyncio.create_task(batcher.submit(1, size=1))
        while not work.batches:
            await asyncio.sleep(0)
        gone, last = asyncio.create_task(batcher.submit(2, size=1)), asyncio.create_task(batcher.submit(3, size=1))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        work.go_on.set()
        await first
        return await last

    assert asyncio.run(run()) == 6
    assert work.batches == [[1], [3]]
