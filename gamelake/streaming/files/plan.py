"""What the driver tells the tasks of a batch of files."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    """How large a file may be, as it is stored and as it unpacks; of a larger one no event is taken."""

    stored_bytes: int = 256 * MIB
    unpacked_bytes: int = 1024 * MIB


class NamedObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object that a task is to read; `value` is the notification, for the dead letters."""

    place: ObjectPosition
    name: ObjectName
    size: int
    value: bytes
    overwrites: bool = False


class RejectedNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification that leads to no file; its object's name is empty where it names none."""

    place: ObjectPosition
    name: ObjectName
    value: bytes | None
    reason: DeadLetterReason
    detail: str


class TaskInput(msgspec.Struct, frozen=True, kw_only=True):
    """What one task does; `claimed` has the identities of events that another task of the batch has, 16 bytes each."""

    number: int
    objects: tuple[NamedObject, ...]
    letters: tuple[RejectedNotification, ...] = ()
    claimed: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDedupPlan:
    """What a task needs to find events that came before, by another file or another way.

    Attributes:
        folder: where the identities of what is taken are written.
        seed: of the identities.
        silver: the version of silver/events that is looked into; None if there is no such table.
        uncommitted: data files that will be in silver, and may not be in that version.
        remembered: so many of silver's events a worker process may keep in memory from batch to batch.
    """

    folder: str
    batch_id: int
    seed: str
    silver: int | None
    uncommitted: tuple[FileEntry, ...] = ()
    remembered: int = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesPlan:
    """Everything that a task needs besides its parcel; pickled into the job."""

    reading: TaskPlan
    landing: Location
    schema_id: int
    limits: FileLimits
    twins: FileDedupPlan | None = None
    readers: int = 8


def encode_task_input(parcel: TaskInput) -> bytes:
    """A parcel as a row of the job."""
    return msgspec.msgpack.encode(parcel)


def decode_task_input(row: bytes) -> TaskInput:
    """A parcel from a row of the job."""
    return msgspec.msgpack.decode(row, type=TaskInput)


_BYTES_PER_PARCEL = 32 * 2**20
# So little is done by one task: compressed lines of JSON take it about a second.
_BYTES_ALONE = 4 * 2**20
# What an object costs besides its bytes, in bytes: a trip to the store.
_PER_OBJECT = 64 * 2**10


def task_inputs(
    objects: Sequence[NamedObject], letters: Sequence[RejectedNotification], cores: int, claimed: Mapping[int, Events]
) -> list[TaskInput]:
    """The parcels of a batch; the same objects are always shared out in the same way."""
    count = _count(objects, cores)
    heap = [(0, number) for number in range(count)]
    shares: list[list[NamedObject]] = [[] for _ in range(count)]
    for each in sorted(objects, key=lambda one: (-one.size, one.place.partition, one.place.first_offset)):
        load, number = heapq.heappop(heap)
        shares[number].append(each)
        heapq.heappush(heap, (load + each.size + _PER_OBJECT, number))
    return [
        TaskInput(
            number=number,
            objects=tuple(share),
            letters=tuple(letters) if number == 0 else (),
            claimed=claimed[number].pack() if number in claimed else b"",
        )
        for number, share in enumerate(shares)
    ]


def _count(objects: Sequence[NamedObject], cores: int) -> int:
    """One task for little, all cores for much, and no task that would take long alone."""
    load = sum(each.size + _PER_OBJECT for each in objects)
    wanted = -(-load // _BYTES_PER_PARCEL)
    if load > _BYTES_ALONE:
        wanted = -(-max(wanted, cores) // cores) * cores
    return max(1, min(wanted, len(objects)))
