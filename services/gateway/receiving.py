"""Bodies on their way in: each within a size and a time, all of them together within a memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Protocol

from services.gateway.errors import NotTakenError, TooLargeError, TooSlowError, UnreadableBodyError
from services.gateway.settings import BodyLimits

# What is read of a body that is refused, in largest bodies.
_DISCARDED_BODIES = 8


class Incoming(Protocol):
    """The body of a request, as RSGI gives it: whole, or in the pieces in which it arrives."""

    async def __call__(self) -> bytes:
        """All of it."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Its pieces."""


class Receiver:
    """Reads bodies, on one event loop."""

    def __init__(self, limits: BodyLimits) -> None:
        self._limits = limits
        self._expected = 0

    def check_announced(self, length: str) -> None:
        """Look at the length that a request announces, which may be empty.

        Raises:
            TooLargeError: it is over the limit, or no length.
        """
        if length and (not length.isdigit() or int(length) > self._limits.size):
            raise self._too_large()

    async def receive(self, announced: str, incoming: Incoming) -> bytes:
        """The whole body of a request whose length was looked at.

        Raises:
            NotTakenError: as many bodies are on their way as there may be.
            TooLargeError: it is over the limit after all.
            TooSlowError: it did not arrive in time.
            UnreadableBodyError: it is empty.
        """
        # A body is expected to be as large as it may be until it is there: the memory is its sender's to fill.
        expected = int(announced) if announced else self._limits.size
        if self._expected and self._expected + expected > self._limits.on_their_way:
            await self.discard(incoming)
            raise NotTakenError("too many bodies are on their way")
        self._expected += expected
        try:
            async with asyncio.timeout(self._limits.patience.total_seconds()):
                body = await (incoming() if announced else self._unannounced(incoming))
        except TimeoutError:
            raise TooSlowError("the body did not arrive in time") from None
        finally:
            self._expected -= expected
        if not body:
            raise UnreadableBodyError("the body is empty")
        return body

    async def discard(self, incoming: Incoming) -> None:
        """Read on for a while: a client that is still writing when the connection closes never sees the answer."""
        left = _DISCARDED_BODIES * self._limits.size
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.patience.total_seconds()):
                async for chunk in incoming:
                    left -= len(chunk)
                    if left < 0:
                        return

    async def _unannounced(self, incoming: Incoming) -> bytes:
        body, size = bytearray(), 0
        async for chunk in incoming:
            size += len(chunk)
            if size <= self._limits.size:
                body += chunk
            elif size > _DISCARDED_BODIES * self._limits.size:
                break
        if size > self._limits.size:
            raise self._too_large()
        return bytes(body)

    def _too_large(self) -> TooLargeError:
        return TooLargeError(f"a body may have {self._limits.size} bytes")
