"""Defects of events: which event has one, and how values become undecodable."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.schemas.framing import HEADER_BYTES, frame_header
from tools.simulator.event_arrays import EventArrays
from tools.simulator.spec import Shares

_HOUR_US = 3600 * 1_000_000
_LATE_HOURS = (2, 72)
_FUTURE_HOURS = (1, 20)
# Longer ago than the contract takes.
_WRONG_CLOCK_HOURS = (2 * 365 * 24, 3 * 365 * 24)
# Far beyond the ids that a registry assigns.
UNKNOWN_SCHEMA_ID = 2_000_000_000
# Field 1 with wire type 7, which does not exist: random bytes behind it can't pass for a message.
_IMPOSSIBLE_TAG = b"\x0f"
_WRONG_MAGIC = b"\x01"
_MAX_JUNK = 48
# The body begins with the event's id, a tag, a length and 36 characters: a cut before its end can't pass for a message.
_SHORTEST_CUT, _LONGEST_CUT = 3, 37


class Defect(IntEnum):
    """The defect of an event; an event has one at most."""

    NONE = 0
    LATE = 1
    FUTURE = 2
    DUPLICATED = 3
    UNDECODABLE = 4
    UNKNOWN_GAME = 5
    NULL_TIME = 6
    WRONG_CLOCK = 7
    UNKNOWN_SCHEMA = 8


@dataclass(frozen=True, slots=True)
class Defects:
    """Each event's `Defect`, and by how many microseconds its time is shifted; parallel arrays."""

    defect: npt.NDArray[np.int8]
    shift_us: npt.NDArray[np.int64]


def draw_defects(shares: Shares, count: int, random: np.random.Generator) -> Defects:
    """Draw the defect of `count` events by the shares."""
    in_order = (
        shares.late, shares.future, shares.duplicate, shares.undecodable, shares.unknown_game, shares.null_time,
        shares.wrong_clock, shares.unknown_schema,
    )  # fmt: skip
    edges = np.cumsum(in_order)
    # A number beyond the last edge wraps around to 0, which is not a defect.
    defect = (np.searchsorted(edges, random.random(count), side="right") + 1) % len(Defect)
    shift_us = np.zeros(count, dtype=np.int64)
    shifts = (
        (Defect.LATE, _LATE_HOURS, -1),
        (Defect.FUTURE, _FUTURE_HOURS, 1),
        (Defect.WRONG_CLOCK, _WRONG_CLOCK_HOURS, -1),
    )
    for which, hours, direction in shifts:
        hit = np.flatnonzero(defect == which)
        shift_us[hit] = direction * (random.uniform(*hours, len(hit)) * _HOUR_US).astype(np.int64)
    return Defects(defect=defect.astype(np.int8), shift_us=shift_us)


class Corruption(StrEnum):
    """The way to make a value undecodable."""

    RANDOM_BODY = "random_body"
    TRUNCATED_BODY = "truncated_body"
    WRONG_MAGIC = "wrong_magic"
    UNKNOWN_SCHEMA = "unknown_schema"


_KINDS = tuple(Corruption)
_KINDS_OF_BODIES = (Corruption.RANDOM_BODY, Corruption.TRUNCATED_BODY)


@dataclass(frozen=True, slots=True)
class Corrupted:
    """The events whose values are made undecodable: their indexes, and the salts that choose how; parallel arrays."""

    at: npt.NDArray[np.int64]
    salt: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, events: EventArrays) -> "Corrupted":
        """Return the corruptions of some events."""
        at = np.flatnonzero((events.defect == Defect.UNDECODABLE) | (events.defect == Defect.UNKNOWN_SCHEMA))
        salt, kinds = events.salt[at], np.uint64(len(_KINDS))
        of_schema = salt - salt % kinds + np.uint64(_KINDS.index(Corruption.UNKNOWN_SCHEMA))
        return cls(at, np.where(events.defect[at] == Defect.UNKNOWN_SCHEMA, of_schema, salt))


def corruption_kinds(salt: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Index into `Corruption` for each value, by its salt."""
    return (salt % np.uint64(len(_KINDS))).astype(np.int64)


def corrupt_records(values: pa.BinaryArray, salt: npt.NDArray[np.uint64]) -> pa.BinaryArray:
    """Make each Confluent-framed value undecodable; the salt chooses how."""
    return _corrupt_each(values, salt, _KINDS, _corrupt)


def corrupt_messages(values: pa.BinaryArray, salt: npt.NDArray[np.uint64]) -> pa.BinaryArray:
    """Make each value without a frame undecodable; the salt chooses how."""
    return _corrupt_each(values, salt, _KINDS_OF_BODIES, _corrupt_body)


def _corrupt_each(
    values: pa.BinaryArray,
    salt: npt.NDArray[np.uint64],
    kinds: Sequence[Corruption],
    corrupt: Callable[[bytes, Corruption, int], bytes],
) -> pa.BinaryArray:
    numbers = salt.tolist()
    corrupted = [
        corrupt(value, kinds[number % len(kinds)], number >> 8)
        for value, number in zip(values.to_pylist(), numbers, strict=True)
    ]
    return pa.array(corrupted, pa.binary())


def _corrupt(value: bytes, kind: Corruption, number: int) -> bytes:
    header, body = value[:HEADER_BYTES], value[HEADER_BYTES:]
    match kind:
        case Corruption.WRONG_MAGIC:
            return _WRONG_MAGIC + value[1:]
        case Corruption.UNKNOWN_SCHEMA:
            return frame_header(UNKNOWN_SCHEMA_ID) + body
        case _:
            return header + _corrupt_body(body, kind, number)


def _corrupt_body(body: bytes, kind: Corruption, number: int) -> bytes:
    if kind is Corruption.TRUNCATED_BODY:
        return body[: _SHORTEST_CUT + number % (_LONGEST_CUT - _SHORTEST_CUT + 1)]
    junk = np.random.default_rng(number).bytes(1 + number % _MAX_JUNK)
    return _IMPOSSIBLE_TAG + junk
