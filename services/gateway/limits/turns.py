"""Divides the event loop's time between the games: large bodies of one game are processed one after the other.

Reading a large body takes tens of milliseconds, in which the loop does nothing else. A thousand of them at once would
make all other games wait for all of them.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from services.gateway.errors import OverMemoryError

# A sender that waits longer gives up, and its request is processed for nothing.
_MOST_WAIT_SECONDS = 5.0
# How much the last turn counts in the mean.
_LAST = 0.1


@dataclass(slots=True)
class _Queue:
    """The requests of one game, and the mean time of a turn; until there was one, that of a body of 8 MiB."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    requests: int = 0
    seconds: float = 0.05


class Turns:
    """Grants each game one turn in each pass of the event loop, in the order of the requests."""

    def __init__(self) -> None:
        self._queues: defaultdict[str, _Queue] = defaultdict(_Queue)

    @asynccontextmanager
    async def turn(self, game: str) -> AsyncIterator[None]:
        """Wait for a turn of the game, which lasts as long as the block runs without waiting.

        Raises:
            OverMemoryError: the wait would be too long, or was.
        """
        queue = self._queues[game]
        if queue.requests * queue.seconds > _MOST_WAIT_SECONDS:
            raise OverMemoryError
        queue.requests += 1
        try:
            await _acquire(queue.lock)
            started = time.monotonic()
            try:
                yield
            finally:
                await asyncio.sleep(0)
                queue.lock.release()
                queue.seconds += _LAST * (time.monotonic() - started - queue.seconds)
        finally:
            queue.requests -= 1


async def _acquire(lock: asyncio.Lock) -> None:
    try:
        async with asyncio.timeout(_MOST_WAIT_SECONDS):
            await lock.acquire()
    except TimeoutError:
        raise OverMemoryError from None
