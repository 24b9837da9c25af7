"""An answer that takes time is computed on a thread of its own kind, once for all who ask meanwhile."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import timedelta
from typing import Generic, TypeVar

AnswerT = TypeVar("AnswerT")


class CachedAnswer(Generic[AnswerT]):
    """Computes an answer when it is asked for and the last one is too old; for one event loop.

    Args:
        compute: called on a thread of the executor, never twice at a time.
        max_age: how long an answer is used, from when it was complete.
    """

    def __init__(self, compute: Callable[[], AnswerT], executor: Executor, max_age: timedelta) -> None:
        self._compute = compute
        self._executor = executor
        self._max_age_seconds = max_age.total_seconds()
        self._answer: asyncio.Future[AnswerT] | None = None
        self._valid_until = 0.0

    async def get(self) -> AnswerT:
        """Return the answer; raises what computing it raised."""
        if self._answer is None or (self._answer.done() and time.monotonic() >= self._valid_until):
            self._answer = asyncio.get_running_loop().run_in_executor(self._executor, self._compute)
            self._answer.add_done_callback(self._completed)
        # One who stops waiting does not cancel it for the others.
        return await asyncio.shield(self._answer)

    def _completed(self, answer: asyncio.Future[AnswerT]) -> None:
        self._valid_until = time.monotonic() + self._max_age_seconds
        if not answer.cancelled():
            answer.exception()
