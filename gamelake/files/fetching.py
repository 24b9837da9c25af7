"""Objects to files: fetched ahead, each alone costs a trip to the store, and unpacked."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from gamelake.contracts.reasons import DeadLetterReason
from gamelake.files.coordinates import MOST_EVENTS
from gamelake.files.formats.events import UnreadableFileError
from gamelake.files.landing import Landing, MissingObjectError, OverwrittenObjectError
from gamelake.files.plan import FileLimits, NamedObject
from gamelake.files.reading import File
from gamelake.files.unpacking import TooLargeFileError, unpacked

_AHEAD = 32


@dataclass(frozen=True, slots=True)
class Refused:
    """An object that is not read, by its place; `reason` is None where a later content is read in its place."""

    place: int
    reason: DeadLetterReason | None
    detail: str


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches objects, so many at once."""

    landing: Landing
    limits: FileLimits
    readers: int

    def files(self, objects: Sequence[NamedObject]) -> Iterator[File | Refused]:
        """What each object is, in their order."""
        waiting: deque[tuple[int, Future[bytes]]] = deque()
        with ThreadPoolExecutor(self.readers) as pool:
            for place, each in enumerate(objects):
                waiting.append((place, pool.submit(self.landing.read, each.name, self.limits.stored_bytes)))
                if len(waiting) >= _AHEAD:
                    yield self._file(objects, *waiting.popleft())
            while waiting:
                yield self._file(objects, *waiting.popleft())

    def _file(self, objects: Sequence[NamedObject], place: int, content: Future[bytes]) -> File | Refused:
        try:
            return File(place, objects[place].name.key, self._whole(content.result()))
        except OverwrittenObjectError as error:
            # What it is by now has a notification of its own.
            return Refused(place, None, str(error))
        except MissingObjectError as error:
            return Refused(place, DeadLetterReason.MISSING_FILE, str(error))
        except TooLargeFileError as error:
            return Refused(place, DeadLetterReason.FILE_TOO_LARGE, str(error))
        except UnreadableFileError as error:
            return Refused(place, DeadLetterReason.UNREADABLE_FILE, str(error))

    def _whole(self, stored: bytes) -> bytes:
        limits = self.limits
        if len(stored) > limits.stored_bytes:
            raise TooLargeFileError(f"the file has more than {limits.stored_bytes} bytes: split it")
        content = unpacked(stored, limits.unpacked_bytes)
        if content.count(b"\n") >= MOST_EVENTS:
            raise TooLargeFileError(f"the file has more than {MOST_EVENTS} events: split it")
        return content
