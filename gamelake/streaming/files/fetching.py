"""Fetches objects ahead of their use, in parallel, and decompresses them."""

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
from gamelake.streaming.files.plan import MIB, FileLimits, NamedObject
from gamelake.streaming.files.reading import FileContent

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# The largest window of a frame, as it is allocated; zstd levels up to 19 need less.
_ZSTD_WINDOW = 8 * 2**20
_PIECE = 2**20
# 4 bytes can decompress to 128 KiB: a slice of this size exceeds a limit by 8 MiB at most.
_ZSTD_SLICE = 256

_AHEAD = 32
# By the sizes in the notifications, as stored: with 32 files of the largest allowed size a worker would need 8 GiB.
_AHEAD_BYTES = 128 * MIB


class TooLargeFileError(Exception):
    """The decompressed file is larger than the limit."""


def decompressed(content: bytes, limit: int) -> bytes:
    """Decompress gzip and zstd; other content is returned as it is.

    Raises:
        UnreadableFileError: the content is truncated or damaged.
        TooLargeFileError: the result is larger than `limit` bytes.
    """
    if not content.startswith((_GZIP, _ZSTD)):
        return content
    whole = bytearray()
    for piece in _pieces(content):
        whole += piece
        if len(whole) > limit:
            raise TooLargeFileError(f"the decompressed file has more than {limit} bytes")
    return bytes(whole)


def _pieces(content: bytes) -> Iterator[bytes]:
    try:
        yield from _inflated(content) if content.startswith(_ZSTD) else _gunzipped(content)
    except EOFError:
        raise UnreadableFileError("the file is truncated: its compressed data has no end") from None
    except (OSError, zlib.error, zstandard.ZstdError) as error:
        raise UnreadableFileError(f"the file's compression is damaged: {error}") from None


def _gunzipped(content: bytes) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
        while piece := stream.read(_PIECE):
            yield piece


def _inflated(content: bytes) -> Iterator[bytes]:
    """The content of all zstd frames, in pieces."""
    index = 0
    while index < len(content):
        inflater = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        while not inflater.eof:
            if index >= len(content):
                raise EOFError
            yield inflater.decompress(content[index : index + _ZSTD_SLICE])
            index += _ZSTD_SLICE
        index = min(index, len(content)) - len(inflater.unused_data)


@dataclass(frozen=True, slots=True)
class RefusedObject:
    """An object that is not read, by its index in the list; `reason` is None if newer content replaced it."""

    index: int
    reason: DeadLetterReason | None
    detail: str


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches objects with `readers` threads: 32 at most, or 128 MiB, and one at least."""

    landing: LandingBucket
    limits: FileLimits
    readers: int

    def files(self, objects: Sequence[NamedObject]) -> Iterator[FileContent | RefusedObject]:
        """The content of each object, in their order, or why it is not read."""
        waiting: deque[tuple[int, Future[bytes]]] = deque()
        ahead = 0
        with ThreadPoolExecutor(self.readers) as pool:
            for index, each in enumerate(objects):
                while waiting and (len(waiting) >= _AHEAD or ahead + each.size > _AHEAD_BYTES):
                    ahead -= objects[waiting[0][0]].size
                    yield self._file(objects, *waiting.popleft())
                waiting.append((index, pool.submit(self.landing.read, each.name, self.limits.stored_bytes)))
                ahead += each.size
            while waiting:
                yield self._file(objects, *waiting.popleft())

    def _file(self, objects: Sequence[NamedObject], index: int, content: Future[bytes]) -> FileContent | RefusedObject:
        try:
            return FileContent(index, objects[index].name.key, self._whole(content.result()))
        except OverwrittenObjectError as error:
            # The newer content has its own notification.
            return RefusedObject(index, None, str(error))
        except MissingObjectError as error:
            return RefusedObject(index, DeadLetterReason.MISSING_FILE, str(error))
        except TooLargeFileError as error:
            return RefusedObject(index, DeadLetterReason.FILE_TOO_LARGE, str(error))
        except UnreadableFileError as error:
            return RefusedObject(index, DeadLetterReason.UNREADABLE_FILE, str(error))

    def _whole(self, stored: bytes) -> bytes:
        limits = self.limits
        if len(stored) > limits.stored_bytes:
            raise TooLargeFileError(f"the file has more than {limits.stored_bytes} bytes: split it")
        content = decompressed(stored, limits.decompressed_bytes)
        if content.count(b"\n") >= MOST_EVENTS:
            raise TooLargeFileError(f"the file has more than {MOST_EVENTS} events: split it")
        return content
