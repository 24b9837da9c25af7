"""Objects to files: fetched ahead, each alone costs a trip to the store, and unpacked."""

import gzip
import io
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import zstandard

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.streaming.files.coordinates import MOST_EVENTS
from gamelake.streaming.files.formats.events import UnreadableFileError
from gamelake.streaming.files.landing import LandingBucket, MissingObjectError, OverwrittenObjectError
from gamelake.streaming.files.plan import FileLimits, NamedObject
from gamelake.streaming.files.reading import FileContent

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# A frame may ask its reader for this much memory; zstd's own levels up to 19 stay below.
_ZSTD_WINDOW = 8 * 2**20
_PIECE = 2**20
# A block of 4 bytes can unpack to 128 KiB: so many bytes at once go over a limit by 8 MiB at most.
_ZSTD_SLICE = 256


class TooLargeFileError(Exception):
    """A file unpacks to more than may be."""


def decompressed(content: bytes, limit: int) -> bytes:
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


_AHEAD = 32


@dataclass(frozen=True, slots=True)
class RefusedObject:
    """An object that is not read, by its place; `reason` is None where a later content is read in its place."""

    place: int
    reason: DeadLetterReason | None
    detail: str


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches objects, so many at once."""

    landing: LandingBucket
    limits: FileLimits
    readers: int

    def files(self, objects: Sequence[NamedObject]) -> Iterator[FileContent | RefusedObject]:
        """What each object is, in their order."""
        waiting: deque[tuple[int, Future[bytes]]] = deque()
        with ThreadPoolExecutor(self.readers) as pool:
            for place, each in enumerate(objects):
                waiting.append((place, pool.submit(self.landing.read, each.name, self.limits.stored_bytes)))
                if len(waiting) >= _AHEAD:
                    yield self._file(objects, *waiting.popleft())
            while waiting:
                yield self._file(objects, *waiting.popleft())

    def _file(self, objects: Sequence[NamedObject], place: int, content: Future[bytes]) -> FileContent | RefusedObject:
        try:
            return FileContent(place, objects[place].name.key, self._whole(content.result()))
        except OverwrittenObjectError as error:
            # What it is by now has a notification of its own.
            return RefusedObject(place, None, str(error))
        except MissingObjectError as error:
            return RefusedObject(place, DeadLetterReason.MISSING_FILE, str(error))
        except TooLargeFileError as error:
            return RefusedObject(place, DeadLetterReason.FILE_TOO_LARGE, str(error))
        except UnreadableFileError as error:
            return RefusedObject(place, DeadLetterReason.UNREADABLE_FILE, str(error))

    def _whole(self, stored: bytes) -> bytes:
        limits = self.limits
        if len(stored) > limits.stored_bytes:
            raise TooLargeFileError(f"the file has more than {limits.stored_bytes} bytes: split it")
        content = decompressed(stored, limits.unpacked_bytes)
        if content.count(b"\n") >= MOST_EVENTS:
            raise TooLargeFileError(f"the file has more than {MOST_EVENTS} events: split it")
        return content
