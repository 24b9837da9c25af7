"""What the driver sends to the tasks of a batch of files: their plan, and a share of the objects for each."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gamelake.layers.known_events import Events
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.storage.delta_log import FileEntry
from gamelake.storage.store import Location
from gamelake.streaming.files.coordinates import ObjectPosition
from gamelake.streaming.files.notifications import ObjectName
from gamelake.streaming.plan import TaskPlan

MIB = 2**20

_BYTES_PER_TASK = 32 * 2**20
# Up to this size one task does all: compressed JSON lines of it take about a second.
_BYTES_ALONE = 4 * 2**20
# The cost of one request to the store, in bytes.
_PER_OBJECT = 64 * 2**10


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    """The largest size of a file, as stored and decompressed; a larger one becomes a dead letter."""

    stored_bytes: int = 256 * MIB
    decompressed_bytes: int = 1024 * MIB


class NamedObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object that a task is to read; `value` is its notification, for the dead letters."""

    position: ObjectPosition
    name: ObjectName
    size: int
    value: bytes
    overwrites: bool = False


class RejectedNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification whose object is not read; the name is empty if the notification has no object."""

    position: ObjectPosition
    name: ObjectName
    value: bytes | None
    reason: DeadLetterReason
    detail: str


class TaskInput(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one task.

    Attributes:
        claimed: identities of events that another task of the batch ingests, 16 bytes each.
    """

    number: int
    objects: tuple[NamedObject, ...]
    rejected: tuple[RejectedNotification, ...] = ()
    claimed: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDedupPlan:
    """What a task needs to find events that are in silver already, from another file or from Kafka.

    Attributes:
        folder: where the identities of ingested events are written.
        seed: of the identities.
        silver: the version of silver/events to search; None if the table does not exist.
        uncommitted: data files of a decided batch that may not be in that version.
        remembered: how many identities a worker process may keep in memory from batch to batch.
    """

    folder: str
    batch_id: int
    seed: str
    silver: int | None
    uncommitted: tuple[FileEntry, ...] = ()
    remembered: int = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesPlan:
    """Everything that a task needs in addition to its `TaskInput`; pickled into the job."""

    reading: TaskPlan
    landing: Location
    schema_id: int
    limits: FileLimits
    dedup: FileDedupPlan | None = None
    readers: int = 8


def encode_task_input(task_input: TaskInput) -> bytes:
    """A task's input in MessagePack."""
    return msgspec.msgpack.encode(task_input)


def decode_task_input(row: bytes) -> TaskInput:
    """A task's input from MessagePack."""
    return msgspec.msgpack.decode(row, type=TaskInput)


def task_inputs(
    objects: Sequence[NamedObject], rejected: Sequence[RejectedNotification], cores: int, claimed: Mapping[int, Events]
) -> list[TaskInput]:
    """Divide the objects of a batch between tasks by size; the same objects always give the same inputs.

    Args:
        objects: to be read.
        rejected: notifications that become dead letters; the first task writes them.
        cores: of the executors.
        claimed: by task number, events that another task ingests.
    """
    count = _count(objects, cores)
    heap = [(0, number) for number in range(count)]
    shares: list[list[NamedObject]] = [[] for _ in range(count)]
    for each in sorted(objects, key=lambda one: (-one.size, one.position.partition, one.position.first_offset)):
        load, number = heapq.heappop(heap)
        shares[number].append(each)
        heapq.heappush(heap, (load + each.size + _PER_OBJECT, number))
    return [
        TaskInput(
            number=number,
            objects=tuple(share),
            rejected=tuple(rejected) if number == 0 else (),
            claimed=claimed[number].encode() if number in claimed else b"",
        )
        for number, share in enumerate(shares)
    ]


def _count(objects: Sequence[NamedObject], cores: int) -> int:
    """The number of tasks: one for a small batch, a multiple of the cores for a large one."""
    load = sum(each.size + _PER_OBJECT for each in objects)
    wanted = -(-load // _BYTES_PER_TASK)
    if load > _BYTES_ALONE:
        wanted = -(-max(wanted, cores) // cores) * cores
    return max(1, min(wanted, len(objects)))
