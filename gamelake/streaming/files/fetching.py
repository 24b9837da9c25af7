"""Fetches objects ahead of their use, in parallel."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from gamelake.streaming.files.arrivals.landing import LandingBucket
from gamelake.streaming.files.formats.events import TooLargeFileError
from gamelake.streaming.files.plan import MIB, FileLimits, NamedObject
from gamelake.streaming.files.reading import StoredFile
from gamelake.streaming.files.refusals import RefusedObject, refusal

_AHEAD = 32
# Stored sizes, from the notifications: 32 files of the largest allowed size would need 8 GiB in a worker.
_AHEAD_BYTES = 128 * MIB


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches objects ahead: up to 32 objects or 128 MiB, and at least one.

    Attributes:
        landing: reads the objects.
        limits: the largest size of a file.
        readers: the number of threads.
    """

    landing: LandingBucket
    limits: FileLimits
    readers: int

    def files(self, objects: Sequence[NamedObject]) -> Iterator[StoredFile | RefusedObject]:
        """Yield the content of each object in order, or the reason why it is not read.

        Raises:
            StoreUnavailableError: the store does not answer.
        """
        waiting: deque[tuple[int, Future[memoryview | None]]] = deque()
        ahead = 0
        with ThreadPoolExecutor(self.readers) as pool:
            for index, each in enumerate(objects):
                while waiting and (len(waiting) >= _AHEAD or ahead + each.size > _AHEAD_BYTES):
                    ahead -= objects[waiting[0][0]].size
                    yield self._file(objects, *waiting.popleft())
                waiting.append((index, pool.submit(self.landing.read, each.name, self._limit_ahead(each))))
                ahead += each.size
            while waiting:
                yield self._file(objects, *waiting.popleft())

    def _limit_ahead(self, named: NamedObject) -> int:
        """Return the number of bytes of an object that may be fetched ahead: the size in its notification."""
        return min(named.size, self.limits.stored_bytes)

    def _file(
        self, objects: Sequence[NamedObject], index: int, content: Future[memoryview | None]
    ) -> StoredFile | RefusedObject:
        named, limits = objects[index], self.limits
        try:
            stored = content.result()
            if stored is None:
                # It is larger than its notification says, so it is read only now, and not ahead.
                stored = self.landing.read(named.name, limits.stored_bytes)
            if stored is None:
                raise TooLargeFileError(f"the file has more than {limits.stored_bytes} bytes: split it")  # noqa: TRY301 # as a reader's
        except Exception as error:
            return refusal(index, error)
        return StoredFile(index, named.name.key, stored, limits.decompressed_bytes)
