"""The data from the driver to the tasks of a batch of files: one plan, and a share of the objects for each task."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gamelake.delta.log.codec import FileEntry
from gamelake.layers.known_events import Events
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.objects.store import Location
from gamelake.streaming.files.arrivals.notifications import ObjectName
from gamelake.streaming.files.coordinates import ObjectPosition
from gamelake.streaming.plan import TaskPlan

MIB = 2**20

_BYTES_PER_TASK = 32 * 2**20
# Up to this size one task reads all objects: this takes about a second for compressed JSON lines.
_BYTES_ALONE = 4 * 2**20
# The cost of one request to the store, in bytes.
_PER_OBJECT = 64 * 2**10


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    """The largest size of a file; a larger file becomes a dead letter.

    Attributes:
        stored_bytes: as stored.
        decompressed_bytes: after decompression.
    """

    stored_bytes: int = 256 * MIB
    decompressed_bytes: int = 1024 * MIB


class NamedObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object that a task must read.

    Attributes:
        position: of the object in its notification.
        name: of the object.
        size: in bytes, from the notification; 0 if unknown.
        value: the notification, for the dead letters.
        overwrites: True if the key had another content before.
    """

    position: ObjectPosition
    name: ObjectName
    size: int
    value: bytes
    overwrites: bool = False


class RejectedNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification whose object is not read.

    Attributes:
        position: of the object in the notification.
        name: of the object; empty if the notification has no object.
        value: the notification.
        reason: of the dead letter.
        detail: of the dead letter.
    """

    position: ObjectPosition
    name: ObjectName
    value: bytes | None
    reason: DeadLetterReason
    detail: str


class TaskInput(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one task.

    Attributes:
        number: of the task, from 0.
        objects: to read.
        rejected: notifications that the task writes to the dead letters.
        claimed: the identities of events that another task of the batch ingests, 16 bytes each.
    """

    number: int
    objects: tuple[NamedObject, ...]
    rejected: tuple[RejectedNotification, ...] = ()
    claimed: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDedupPlan:
    """The plan of a task's search for events that silver has already, from another file or from Kafka.

    Attributes:
        folder: where the task writes the identities of ingested events.
        batch_id: of the batch; it is in the names of the identity files.
        seed: of the identities.
        silver: the version of silver/events to search; None if the table does not exist.
        uncommitted: data files of silver/events that are decided, but may not be in that version.
        remembered: the largest number of identities that a worker process keeps in memory from batch to batch.
    """

    folder: str
    batch_id: int
    seed: str
    silver: int | None
    uncommitted: tuple[FileEntry, ...] = ()
    remembered: int = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesPlan:
    """Everything that a task needs in addition to its `TaskInput`; pickled into the job.

    Attributes:
        reading: the plan for the events of the files.
        landing: where the files are.
        schema_id: of the schema that files are read with.
        limits: the largest size of a file.
        dedup: the search for duplicates; None if no duplicates are searched.
        readers: the number of threads that fetch files.
    """

    reading: TaskPlan
    landing: Location
    schema_id: int
    limits: FileLimits
    dedup: FileDedupPlan | None = None
    readers: int = 8


def encode_task_input(task_input: TaskInput) -> bytes:
    """Encode a task's input in MessagePack."""
    return msgspec.msgpack.encode(task_input)


def decode_task_input(row: bytes) -> TaskInput:
    """Decode a task's input from MessagePack."""
    return msgspec.msgpack.decode(row, type=TaskInput)


def task_inputs(
    objects: Sequence[NamedObject], rejected: Sequence[RejectedNotification], cores: int, claimed: Mapping[int, Events]
) -> list[TaskInput]:
    """Divide the objects of a batch between tasks by size; the result depends only on the arguments.

    Args:
        objects: to read.
        rejected: notifications that become dead letters; the first task writes them.
        cores: of all executors.
        claimed: the events that other tasks ingest, by the number of the task that must leave them to others.

    Returns:
        One input for each task, in the order of task numbers; at least one.
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
    """Compute the number of tasks: one for a small batch, a multiple of the cores for a large one."""
    load = sum(each.size + _PER_OBJECT for each in objects)
    wanted = -(-load // _BYTES_PER_TASK)
    if load > _BYTES_ALONE:
        wanted = -(-max(wanted, cores) // cores) * cores
    return max(1, min(wanted, len(objects)))
