"""Batches concurrent calls, for work that is cheaper for many at once: on the event loop, or on another thread."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class Pace:
    """After a round the next one waits so long, unless so much has gathered before."""

    pause: timedelta
    enough: int


class Gathering(Generic[Asked, Given]):
    """Calls `work` on the event loop for all who have gathered; what it raises for all, each gets or not alone."""

    def __init__(self, work: Callable[[Sequence[Asked]], Sequence[Given]], pace: Pace) -> None:
        self._work = work
        self._pause_seconds = pace.pause.total_seconds()
        self._enough = pace.enough
        self._waiting: list[tuple[Asked, asyncio.Future[Given]]] = []
        self._size = 0
        self._next_round: asyncio.Handle | None = None
        self._not_before = 0.0

    async def ask(self, asked: Asked, size: int) -> Given:
        """What the work gives for this, which is of some size."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Given] = loop.create_future()
        self._waiting.append((asked, answer))
        self._size += size
        if self._next_round is None:
            self._next_round = loop.call_at(self._not_before, self._round)
        elif self._size >= self._enough > self._size - size:
            self._next_round.cancel()
            self._next_round = loop.call_soon(self._round)
        return await answer

    def _round(self) -> None:
        gathered, self._waiting = self._waiting, []
        self._size, self._next_round = 0, None
        try:
            given = self._work([asked for asked, _ in gathered])
        except Exception:  # one of them is to blame, and the others are not
            given = None
        for place, (asked, answer) in enumerate(gathered):
            if answer.done():
                continue
            if given is not None:
                answer.set_result(given[place])
            else:
                self._alone(asked, answer)
        self._not_before = asyncio.get_running_loop().time() + self._pause_seconds

    def _alone(self, asked: Asked, answer: asyncio.Future[Given]) -> None:
        try:
            answer.set_result(self._work([asked])[0])
        except Exception as error:
            answer.set_exception(error)


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
