"""The plan of a batch for its tasks: how to read, which state is there already, and where to publish."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from gamelake.kafka import KafkaAccess
from gamelake.streaming.plan import TaskPlan

# A player's state is in one bucket for ever, and a task works on every n-th of them.
BUCKETS = 32


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """The state as the table has it: the last batch in it, the files of that batch, and the purchases of the hour.

    Attributes:
        stream: whose batches these are.
        moment: the stream's time (microseconds since 1970).
        segments: files outside the table.
        players: rows of the table; bases of older tables say 0.
    """

    stream: str = ""
    batch_id: int = -1
    moment: int = 0
    shares: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    players: int = 0


@dataclass(frozen=True, slots=True)
class StatePlan:
    """The state that a batch begins with.

    Attributes:
        seed: what makes players' keys; the stream's own.
        batch_id: the batch that is to be decided.
        shares: how many tasks share the buckets.
        clock: nothing has happened after it (microseconds since 1970).
        files: of the table, each with its bucket.
        changes: files of the batches since the base, with their batches, in order.
        erased: keys of all erased players; `forgotten` are those of them for whom the topic has no tombstone yet.
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
    """A topic, how to reach it, and what its values are of."""

    kafka: KafkaAccess
    topic: str
    schema_id: int
    descriptors: bytes


@dataclass(frozen=True, slots=True)
class LiveOpsPlan:
    """Everything that a task needs besides its records; pickled into the job."""

    reading: TaskPlan
    state: StatePlan
    players: Publication
