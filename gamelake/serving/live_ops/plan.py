"""The plan of a batch for its tasks: how to read, the state that exists already, and where to publish."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from gamelake.kafka import KafkaAccess
from gamelake.streaming.plan import TaskPlan

# A player's state stays in the same bucket for ever. With n tasks, each works on every n-th bucket.
BUCKETS = 32


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """The state in the table, as the note of its newest commit describes it.

    Attributes:
        stream: the state folder of the stream whose state it is.
        batch_id: the last batch in the table; -1 if there is none.
        moment: the stream's time (microseconds since 1970).
        shares: the files of changes of that batch.
        segments: the files, outside the table, with the purchases of the last hour.
        players: the number of rows of the table; 0 in tables of older releases.
    """

    stream: str = ""
    batch_id: int = -1
    moment: int = 0
    shares: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    players: int = 0


@dataclass(frozen=True, slots=True)
class StatePlan:
    """The state that a batch begins with; it is sent to the tasks.

    Attributes:
        folder: the folder of the stream's state files.
        seed: the seed of the stream's player keys.
        batch_id: the batch to decide.
        shares: the number of tasks that share the buckets.
        moment: the stream's time, that of the newest event (microseconds since 1970).
        clock: the current time; later event times are lowered to it (microseconds since 1970).
        base: the state in the table.
        files: the table's files, each with its bucket.
        changes: the files of changes since the base, each with its batch, in order.
        erased: the keys of all erased players, uint64 as bytes.
        forgotten: the erased players (game and pseudonym) who have no tombstone in the topic yet.
    """

    folder: str
    seed: str
    batch_id: int
    shares: int
    moment: int
    clock: int
    base: Base = field(default_factory=Base)
    files: Sequence[tuple[int, str]] = ()
    changes: Sequence[tuple[int, str]] = ()
    erased: bytes = b""
    forgotten: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Publication:
    """A topic to publish to.

    Attributes:
        kafka: how to reach Kafka.
        topic: the topic's name.
        schema_id: the registry's id of the values' schema.
        descriptors: the schema as a serialized `FileDescriptorSet`.
    """

    kafka: KafkaAccess
    topic: str
    schema_id: int
    descriptors: bytes


@dataclass(frozen=True, slots=True)
class LiveOpsPlan:
    """Everything that a task needs besides its records; pickled into the job.

    Attributes:
        reading: how to read and check the records.
        state: the state that the batch begins with.
        players: the topic of players' states.
        is_trial: True if tasks discard their results, and publish and write nothing.
    """

    reading: TaskPlan
    state: StatePlan
    players: Publication
    is_trial: bool = False
