"""Asks something slow in rounds: while one is under way, callers gather for the next."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Given = TypeVar("Given")


class TooManyWaitError(Exception):
    """So many wait for the next round that another one is better told so than kept in memory."""


@dataclass(frozen=True, slots=True)
class _Caller(Generic[Asked, Given]):
    asked: Asked
    size: int
    answer: asyncio.Future[Given]


class Rounds(Generic[Asked, Given]):
    """One round at a time, on another thread; callers are those of one event loop.

    `work` answers all that was asked, in the same order, each with a result or with the error of that one alone; what
    it raises is the error of all. Sizes are whatever the callers say: `most` of it is in a round of several, and
    `most_waiting` in memory.
    """

    def __init__(
        self, work: Callable[[Sequence[Asked]], Sequence[Given | Exception]], *, most: int, most_waiting: int
    ) -> None:
        self._work = work
        self._most = most
        self._most_waiting = most_waiting
        self._callers: deque[_Caller[Asked, Given]] = deque()
        self._waiting = 0
        self._running: asyncio.Task[None] | None = None

    async def ask(self, asked: Asked, size: int) -> Given:
        """The answer of the round that takes this.

        Raises:
            TooManyWaitError: it was not asked.
        """
        if self._callers and self._waiting + size > self._most_waiting:
            raise TooManyWaitError
        loop = asyncio.get_running_loop()
        caller: _Caller[Asked, Given] = _Caller(asked, size, loop.create_future())
        self._callers.append(caller)
        self._waiting += size
        if self._running is None or self._running.done():
            self._running = loop.create_task(self._run())
        return await caller.answer

    async def _run(self) -> None:
        while self._callers:
            callers = self._next()
            answers: Sequence[Given | Exception]
            try:
                answers = await asyncio.to_thread(self._work, [each.asked for each in callers])
            except Exception as error:  # whatever it is, the callers must not wait for ever
                answers = [error] * len(callers)
            for caller, answer in zip(callers, answers, strict=True):
                _give(caller.answer, answer)

    def _next(self) -> list[_Caller[Asked, Given]]:
        """Those who came first, as many as fit; whoever is too large alone goes alone."""
        callers: list[_Caller[Asked, Given]] = []
        size = 0
        while self._callers and (not callers or size + self._callers[0].size <= self._most):
            caller = self._callers.popleft()
            self._waiting -= caller.size
            # Whoever has gone away in the meantime needs no answer.
            if not caller.answer.done():
                callers.append(caller)
                size += caller.size
        return callers


def _give(future: asyncio.Future[Given], answer: Given | Exception) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
