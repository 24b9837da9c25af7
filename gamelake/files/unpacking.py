"""What a file unpacks to, by what it begins with: names lie, magic bytes seldom do."""

import gzip
import io
import zlib
from collections.abc import Iterator

import zstandard

from gamelake.files.formats.events import UnreadableFileError

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# A frame may ask its reader for this much memory; zstd's own levels up to 19 stay below.
_ZSTD_WINDOW = 8 * 2**20
_PIECE = 2**20
# A block of 4 bytes can unpack to 128 KiB: so many bytes at once go over a limit by 8 MiB at most.
_ZSTD_SLICE = 256


class TooLargeFileError(Exception):
    """A file unpacks to more than may be."""


def unpacked(content: bytes, limit: int) -> bytes:
    """The content without its compression; empty content stays empty.

    Raises:
        UnreadableFileError: it is cut off or damaged.
        TooLargeFileError: it unpacks to more than `limit` bytes.
    """
    if not content.startswith((_GZIP, _ZSTD)):
        return content
    whole = bytearray()
    for piece in _pieces(content):
        whole += piece
        if len(whole) > limit:
            raise TooLargeFileError(f"the file unpacks to more than {limit} bytes")
    return bytes(whole)


def _pieces(content: bytes) -> Iterator[bytes]:
    try:
        yield from _inflated(content) if content.startswith(_ZSTD) else _gunzipped(content)
    except EOFError:
        raise UnreadableFileError("the file is cut off: its compression has no end") from None
    except (OSError, zlib.error, zstandard.ZstdError) as error:
        raise UnreadableFileError(f"the file's compression is damaged: {error}") from None


def _gunzipped(content: bytes) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
        while piece := stream.read(_PIECE):
            yield piece


def _inflated(content: bytes) -> Iterator[bytes]:
    """The content of all frames, one behind the other."""
    place = 0
    while place < len(content):
        inflater = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        while not inflater.eof:
            if place >= len(content):
                raise EOFError
            yield inflater.decompress(content[place : place + _ZSTD_SLICE])
            place += _ZSTD_SLICE
        place = min(place, len(content)) - len(inflater.unused_data)
