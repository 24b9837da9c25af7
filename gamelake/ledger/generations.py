"""Records of the checkpoint generations of a stream."""

import msgspec

from gamelake.ledger.manifests import OffsetRange
from gamelake.model.errors import CheckpointError
from gamelake.model.naming import checkpoint_path, generations_folder
from gamelake.objects.records import Records
from gamelake.objects.store import Store


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint generation of a stream.

    Attributes:
        stream: the stream's name.
        number: from 0, in the order of the generations.
        query_id: the id of the stream's query, the first part of `app_id`.
        topic: the Kafka topic.
        topic_id: Kafka's id of the topic; a topic that was deleted and created again has another one.
        first_batch: the id of its first batch.
        reason: why it was created, for operators.
        created_at: ISO 8601, UTC.
        lost: offsets that an operator gave up when it was created.
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
    """All generations of a stream; records are never changed or deleted.

    Example:
        >>> generations = Generations(Store(location), "events")
        >>> first = Generation(
        ...     stream="events", number=0, query_id="q", topic="events", topic_id="t", first_batch=0, reason="first",
        ...     created_at="2026-11-30T00:00:00Z",
        ... )
        >>> generations.add(first)
        >>> [generation.app_id for generation in generations.all()]
        ['q-0']
    """

    def __init__(self, store: Store, stream: str) -> None:
        self._stream = stream
        self._records = Records(store, generations_folder(stream), Generation)

    def all(self) -> list[Generation]:
        """Read the generations in order."""
        return self._records.all()

    def is_begun(self) -> bool:
        """Return True if the stream has ever run."""
        return self._records.read(_name(0)) is not None

    def add(self, generation: Generation) -> None:
        """Record a generation.

        Raises:
            CheckpointError: another process has recorded a generation of this number.
        """
        if not self._records.add(_name(generation.number), generation):
            raise CheckpointError(
                f"another process has just started generation {generation.number} of stream '{self._stream}'; "
                "stop one of the two"
            )


def _name(number: int) -> str:
    return f"{number:06d}"
