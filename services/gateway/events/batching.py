"""Batches concurrent calls, for work that is cheaper for many requests at once: on the event loop, or on a thread."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class BatchingPace:
    """The time that the next batch waits after the last one.

    Attributes:
        pause: the wait after a batch of `full_pause_size` or more; after a smaller one it is shorter, in proportion, so
            that few small requests at once don't wait for others that do not come.
        flush_size: the total size of waiting requests that ends the wait.
    """

    pause: timedelta
    flush_size: int
    full_pause_size: int = 1


class LoopBatcher(Generic[RequestT, ResultT]):
    """Calls `work` on the event loop with all requests that wait; a request that comes alone is served at once.

    Args:
        work: gives one result for each request, in their order. If it raises, it is called again for each request
            alone, so that the error reaches only the request that caused it.
    """

    def __init__(self, work: Callable[[Sequence[RequestT]], Sequence[ResultT]], pace: BatchingPace) -> None:
        self._work = work
        self._pause_seconds = pace.pause.total_seconds()
        self._full_pause_size = pace.full_pause_size
        self._flush_size = pace.flush_size
        self._waiting: list[tuple[RequestT, asyncio.Future[ResultT]]] = []
        self._size = 0
        self._next_run: asyncio.Handle | None = None
        self._not_before = 0.0

    async def submit(self, request: RequestT, size: int) -> ResultT:
        """Add a request to the next batch and wait for its result; `size` counts towards the pace's `flush_size`."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[ResultT] = loop.create_future()
        self._waiting.append((request, result))
        self._size += size
        if self._next_run is None:
            self._next_run = loop.call_at(self._not_before, self._run)
        elif self._size >= self._flush_size > self._size - size:
            self._next_run.cancel()
            self._next_run = loop.call_soon(self._run)
        return await result

    def _run(self) -> None:
        batch, self._waiting = self._waiting, []
        pause = self._pause_seconds * min(1.0, self._size / self._full_pause_size)
        self._size, self._next_run = 0, None
        try:
            results = self._work([request for request, _ in batch])
        except Exception:  # caused by one request; the others must not fail with it
            results = None
        for index, (request, result) in enumerate(batch):
            if result.done():
                continue
            if results is not None:
                result.set_result(results[index])
            else:
                self._run_alone(request, result)
        self._not_before = asyncio.get_running_loop().time() + pause

    def _run_alone(self, request: RequestT, result: asyncio.Future[ResultT]) -> None:
        try:
            result.set_result(self._work([request])[0])
        except Exception as error:
            result.set_exception(error)


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[RequestT, ResultT]):
    request: RequestT
    size: int
    result: asyncio.Future[ResultT]


class ThreadBatcher(Generic[RequestT, ResultT]):
    """Calls `work` on another thread, one batch at a time; requests that come meanwhile wait for the next batch.

    All requests come from one event loop.

    Args:
        work: gives for each request, in their order, a result or the error of that request alone; an error that it
            raises is the error of all.
        max_batch: the greatest total size of a batch of several requests.
    """

    def __init__(self, work: Callable[[Sequence[RequestT]], Sequence[ResultT | Exception]], *, max_batch: int) -> None:
        self._work = work
        self._max_batch = max_batch
        self._queue: deque[_Waiting[RequestT, ResultT]] = deque()
        self._running: asyncio.Task[None] | None = None
        # A thread of its own: nothing that the event loop hands to other threads delays a batch.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="batches")

    async def submit(self, request: RequestT, size: int) -> ResultT:
        """Add a request to the next batch that has space for it and wait for its result."""
        loop = asyncio.get_running_loop()
        waiting: _Waiting[RequestT, ResultT] = _Waiting(request, size, loop.create_future())
        self._queue.append(waiting)
        if self._running is None or self._running.done():
            self._running = loop.create_task(self._run())
        return await waiting.result

    async def _run(self) -> None:
        while self._queue:
            batch = self._next_batch()
            results: Sequence[ResultT | Exception]
            try:
                loop = asyncio.get_running_loop()
                results = await loop.run_in_executor(self._thread, self._work, [each.request for each in batch])
            except Exception as error:  # without a result the requests would wait for ever
                results = [error] * len(batch)
            for waiting, result in zip(batch, results, strict=True):
                _settle(waiting.result, result)

    def _next_batch(self) -> list[_Waiting[RequestT, ResultT]]:
        """The oldest requests, as many as fit; one that is larger than a batch goes alone."""
        batch: list[_Waiting[RequestT, ResultT]] = []
        size = 0
        while self._queue and (not batch or size + self._queue[0].size <= self._max_batch):
            waiting = self._queue.popleft()
            # The result of a cancelled request is not needed.
            if not waiting.result.done():
                batch.append(waiting)
                size += waiting.size
        return batch


def _settle(future: asyncio.Future[ResultT], result: ResultT | Exception) -> None:
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
