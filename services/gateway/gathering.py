"""Work that is cheaper for many at once: who comes while there is much to do is gathered, who comes alone is served."""

import asyncio
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
