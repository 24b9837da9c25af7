"""Records of the checkpoint generations of a stream."""

import msgspec

from gamelake.model.errors import CheckpointError
from gamelake.model.naming import checkpoint_path, generation_path
from gamelake.storage.manifests import OffsetRange
from gamelake.storage.store import Store


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint generation of a stream.

    Attributes:
        first_batch: the id of its first batch.
        lost: offsets that an operator gave up when it was made.
    """

    stream: str
    number: int
    query_id: str
    topic: str
    topic_id: str
    first_batch: int
    reason: str
    created_at: str
    lost: tuple[OffsetRange, ...] = ()

    @property
    def checkpoint(self) -> str:
        """The checkpoint's folder in the lakehouse."""
        return checkpoint_path(self.stream, self.number)

    @property
    def app_id(self) -> str:
        """The application of this generation's Delta transactions."""
        return f"{self.query_id}-{self.number}"


class Generations:
    """All generations of a stream; records are never changed or deleted."""

    def __init__(self, store: Store, stream: str) -> None:
        self._store = store
        self._stream = stream

    def all(self) -> list[Generation]:
        """The generations in order."""
        folder = generation_path(self._stream, 0).rsplit("/", 1)[0]
        records = [self._store.get(path) or b"" for path in self._store.paths(folder)]
        return [msgspec.json.decode(record, type=Generation) for record in records]

    def add(self, generation: Generation) -> None:
        """Record a generation.

        Raises:
            CheckpointError: another process has recorded a generation of this number.
        """
        content = msgspec.json.format(msgspec.json.encode(generation))
        if not self._store.put_new(generation_path(self._stream, generation.number), content):
            raise CheckpointError(
                f"another process has just started generation {generation.number} of stream '{self._stream}'"
            )
