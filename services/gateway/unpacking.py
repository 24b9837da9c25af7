"""What a body unpacks to, by its content encoding, within a limit: a bomb costs no more than the limit."""

import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType

import zstandard

from services.gateway.errors import TooLargeError, UnreadableBodyError, UnsupportedTypeError

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
