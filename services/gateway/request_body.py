"""Request bodies: read within limits of size and time, then decompressed within limits of size and memory."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Protocol

import zstandard
from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined] # exported, but not by its type

from services.gateway.errors import (
    BodyTimeoutError,
    BodyTooLargeError,
    UnreadableBodyError,
    UnsupportedMediaTypeError,
)
from services.gateway.settings import BodyLimits

# How much of a refused body is read, as a multiple of the largest body.
_DRAINED_BODIES = 8
# Python converts texts of at most 4,300 digits to numbers.
_LENGTH_DIGITS = 20
_GZIP = 31  # zlib's window bits for gzip's frame
# The memory that a frame may require for decompression; zstd's own levels up to 19 stay below.
_ZSTD_WINDOW = 8 * 2**20
# A block of 4 bytes can decompress to 128 KiB: slices of this size exceed the limit by 8 MiB at most.
_ZSTD_SLICE = 256


class IncomingBody(Protocol):
    """The body of a request, as RSGI gives it: whole, or in chunks as they arrive."""

    async def __call__(self) -> bytes:
        """All of it."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Its chunks."""


class BodyReader:
    """Reads bodies, on one event loop."""

    def __init__(self, limits: BodyLimits) -> None:
        self._limits = limits

    def expected_size(self, content_length: str) -> int:
        """Return the largest number of bytes that the body can have.

        Args:
            content_length: the header of this name; "" if the request has none.

        Raises:
            BodyTooLargeError: the header is over the limit, or is not a number.
        """
        if not content_length:
            return self._limits.size
        is_number = content_length.isascii() and content_length.isdigit() and len(content_length) <= _LENGTH_DIGITS
        if not is_number or int(content_length) > self._limits.size:
            raise self._too_large()
        return int(content_length)

    async def read(self, content_length: str, incoming: IncomingBody) -> bytes:
        """Read a whole body, whose content length was checked.

        Raises:
            BodyTooLargeError: it is over the limit after all.
            BodyTimeoutError: it did not arrive in time.
            UnreadableBodyError: it is empty, or its sender has closed the connection.
        """
        try:
            async with asyncio.timeout(self._limits.timeout.total_seconds()):
                body = await (incoming() if content_length else self._read_chunks(incoming))
        except TimeoutError:
            raise BodyTimeoutError("the body did not arrive in time") from None
        except ProtocolClosed:
            raise UnreadableBodyError("the body ended early") from None
        if not body:
            raise UnreadableBodyError("the body is empty")
        return body

    async def drain(self, incoming: IncomingBody) -> None:
        """Read and discard for a while: a client that still writes when the connection closes gets no response."""
        left = _DRAINED_BODIES * self._limits.size
        with suppress(TimeoutError, ProtocolClosed):
            async with asyncio.timeout(self._limits.timeout.total_seconds()):
                async for chunk in incoming:
                    left -= len(chunk)
                    if left < 0:
                        return

    async def _read_chunks(self, incoming: IncomingBody) -> bytes:
        body, size = bytearray(), 0
        async for chunk in incoming:
            size += len(chunk)
            if size <= self._limits.size:
                body += chunk
            elif size > _DRAINED_BODIES * self._limits.size:
                break
        if size > self._limits.size:
            raise self._too_large()
        return bytes(body)

    def _too_large(self) -> BodyTooLargeError:
        return BodyTooLargeError(f"a body may have at most {self._limits.size} bytes")


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """Undo a content encoding; a decompression bomb costs no more memory than `limit` bytes (zstd: 8 MiB more).

    Raises:
        UnsupportedMediaTypeError: the encoding is none of identity, gzip and zstd.
        UnreadableBodyError: the body is broken, or bytes follow its end.
        BodyTooLargeError: it decompresses to more than the limit.
    """
    decompressor = _DECOMPRESSORS.get(encoding)
    if decompressor is None:
        raise UnsupportedMediaTypeError("content-encoding must be identity, gzip or zstd")
    content = decompressor(body, limit)
    if len(content) > limit:
        raise BodyTooLargeError(f"the body decompresses to more than {limit} bytes")
    return content


def _identity(body: bytes, _limit: int) -> bytes:
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


_DECOMPRESSORS: Mapping[str, Callable[[bytes, int], bytes]] = MappingProxyType(
    {"": _identity, "identity": _identity, "gzip": _gzip, "zstd": _zstd}
)
