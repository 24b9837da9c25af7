"""Request bodies: read within limits of size, time and memory, then decompressed within a limit of size."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Protocol

import zstandard

from services.gateway.errors import (
    NotTakenError,
    TooLargeError,
    TooSlowError,
    UnreadableBodyError,
    UnsupportedTypeError,
)
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


_GZIP = 31  # zlib's window bits for gzip's frame
# A frame may ask its reader for this much memory; zstd's own levels up to 19 stay below.
_ZSTD_WINDOW = 8 * 2**20
# A block of 4 bytes can unpack to 128 KiB: so many bytes at once go over the limit by 8 MiB at most.
_ZSTD_SLICE = 256


def unpack(body: bytes, encoding: str, limit: int) -> bytes:
    """Undo a content encoding, giving `limit` bytes at most.

    Raises:
        UnsupportedTypeError: the encoding is none of identity, gzip and zstd.
        UnreadableBodyError: the body is broken, or something follows its end.
        TooLargeError: it unpacks to more than the limit.
    """
    way = _WAYS.get(encoding)
    if way is None:
        raise UnsupportedTypeError("content-encoding must be identity, gzip or zstd")
    content = way(body, limit)
    if len(content) > limit:
        raise TooLargeError(f"the body unpacks to more than {limit} bytes")
    return content


def _as_it_is(body: bytes, _limit: int) -> bytes:
    return body


def _gzip(body: bytes, limit: int) -> bytes:
    inflater = zlib.decompressobj(_GZIP)
    try:
        content = inflater.decompress(body, limit + 1)
    except zlib.error as error:
        raise UnreadableBodyError("the body is not gzip") from error
    if len(content) <= limit and (not inflater.eof or inflater.unused_data):
        raise UnreadableBodyError("the body is not one whole gzip member")
    return content


def _zstd(body: bytes, limit: int) -> bytes:
    inflater = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
    content, start = bytearray(), 0
    try:
        for start in range(0, len(body), _ZSTD_SLICE):
            content += inflater.decompress(body[start : start + _ZSTD_SLICE])
            if len(content) > limit or inflater.eof:
                break
    except zstandard.ZstdError as error:
        raise UnreadableBodyError("the body is not zstd") from error
    if len(content) <= limit and (not inflater.eof or inflater.unused_data or start + _ZSTD_SLICE < len(body)):
        raise UnreadableBodyError("the body is not one whole zstd frame")
    return bytes(content)


_WAYS: Mapping[str, Callable[[bytes, int], bytes]] = MappingProxyType(
    {"": _as_it_is, "identity": _as_it_is, "gzip": _gzip, "zstd": _zstd}
)
