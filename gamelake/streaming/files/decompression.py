"""Decompresses files piece by piece: only one piece of a file is in memory, however large the file becomes."""

import gzip
import zlib
from collections.abc import Iterator

import pyarrow as pa
import zstandard

from gamelake.streaming.files.formats.events import TooLargeFileError, UnreadableFileError

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# The largest window of a frame, which the decompressor allocates; zstd levels up to 19 need less.
_ZSTD_WINDOW = 8 * 2**20
_PIECE = 2**20
# 4 bytes can decompress to 128 KiB: a slice of this size decompresses to at most 8 MiB.
_ZSTD_SLICE = 256


def pieces(stored: memoryview, limit: int) -> Iterator[bytes]:
    """Yield the content of a file, decompressed if it is gzip or zstd, in pieces of up to 1 MiB.

    Raises:
        UnreadableFileError: the compressed data is truncated or damaged.
        TooLargeFileError: the content has more than `limit` bytes.
    """
    size = 0
    for inflated in _inflated(stored):
        size += len(inflated)
        if size > limit:
            raise TooLargeFileError(f"the decompressed file has more than {limit} bytes")
        for start in range(0, len(inflated), _PIECE):
            yield bytes(inflated[start : start + _PIECE])


def _inflated(stored: memoryview) -> Iterator[bytes | memoryview]:
    magic = bytes(stored[:4])
    try:
        if magic.startswith(_GZIP):
            yield from _gunzipped(stored)
        elif magic == _ZSTD:
            yield from _unzstd(stored)
        else:
            yield from (stored[start : start + _PIECE] for start in range(0, len(stored), _PIECE))
    except EOFError:
        raise UnreadableFileError("the file is truncated: its compressed data has no end") from None
    except (OSError, zlib.error, zstandard.ZstdError) as error:
        raise UnreadableFileError(f"the file's compression is damaged: {error}") from None


def _gunzipped(stored: memoryview) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=pa.BufferReader(pa.py_buffer(stored))) as stream:
        while piece := stream.read(_PIECE):
            yield piece


def _unzstd(stored: memoryview) -> Iterator[bytes]:
    """Yield the content of all frames."""
    index = 0
    while index < len(stored):
        inflater = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        while not inflater.eof:
            if index >= len(stored):
                raise EOFError
            yield inflater.decompress(stored[index : index + _ZSTD_SLICE])
            index += _ZSTD_SLICE
        index = min(index, len(stored)) - len(inflater.unused_data)
