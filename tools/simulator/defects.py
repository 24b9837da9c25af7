"""What is wrong with an event, if anything."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.schemas.framing import HEADER_BYTES, frame_header
from tools.simulator.spec import Shares

_HOUR_US = 3600 * 1_000_000
_LATE_HOURS = (2, 72)
_FUTURE_HOURS = (1, 20)


class Fate(IntEnum):
    """The one way in which an event is sent."""

    ON_TIME = 0
    LATE = 1
    FUTURE = 2
    DUPLICATED = 3
    UNDECODABLE = 4
    UNKNOWN_GAME = 5
    NULL_TIME = 6


@dataclass(frozen=True, slots=True)
class Fates:
    """Each event's fate, and how far its time lies from where it would be."""

    fate: npt.NDArray[np.int8]
    shift_us: npt.NDArray[np.int64]


def draw_fates(shares: Shares, count: int, random: np.random.Generator) -> Fates:
    """Decide the fate of each event by its share."""
    edges = np.cumsum(
        [shares.late, shares.future, shares.duplicate, shares.undecodable, shares.unknown_game, shares.null_time]
    )
    # A number beyond the last edge wraps around to the good events, which are fate 0.
    fate = (np.searchsorted(edges, random.random(count), side="right") + 1) % len(Fate)
    shift_us = np.zeros(count, dtype=np.int64)
    for which, hours, direction in ((Fate.LATE, _LATE_HOURS, -1), (Fate.FUTURE, _FUTURE_HOURS, 1)):
        hit = np.flatnonzero(fate == which)
        shift_us[hit] = direction * (random.uniform(*hours, len(hit)) * _HOUR_US).astype(np.int64)
    return Fates(fate=fate.astype(np.int8), shift_us=shift_us)


# No registry counts this far.
UNKNOWN_SCHEMA_ID = 2_000_000_000
# Field 1 with wire type 7, which does not exist: random bytes behind it can't pass for a message.
_IMPOSSIBLE_TAG = b"\x0f"
_WRONG_MAGIC = b"\x01"
_MAX_JUNK = 48
# The body begins with the event's id, a tag, a length and 36 characters: a cut before its end can't pass for a message.
_SHORTEST_CUT, _LONGEST_CUT = 3, 37


class Spoiling(StrEnum):
    """What makes a value undecodable."""

    RANDOM_BODY = "random_body"
    TRUNCATED_BODY = "truncated_body"
    WRONG_MAGIC = "wrong_magic"
    UNKNOWN_SCHEMA = "unknown_schema"


_KINDS = tuple(Spoiling)
_KINDS_OF_BODIES = (Spoiling.RANDOM_BODY, Spoiling.TRUNCATED_BODY)


def spoil_kinds(salt: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Give the number of each value's kind among the spoilings."""
    return (salt % np.uint64(len(_KINDS))).astype(np.int64)


def spoil_record(values: pa.BinaryArray, salt: npt.NDArray[np.uint64]) -> pa.BinaryArray:
    """Make each framed value undecodable in the way that its salt says."""
    return _spoil_each(values, salt, _KINDS, _spoil)


def spoil_message(values: pa.BinaryArray, salt: npt.NDArray[np.uint64]) -> pa.BinaryArray:
    """Make each value without a frame undecodable in the way that its salt says."""
    return _spoil_each(values, salt, _KINDS_OF_BODIES, _spoil_body)


def _spoil_each(
    values: pa.BinaryArray,
    salt: npt.NDArray[np.uint64],
    kinds: Sequence[Spoiling],
    spoil: Callable[[bytes, Spoiling, int], bytes],
) -> pa.BinaryArray:
    numbers = salt.tolist()
    spoiled = [
        spoil(value, kinds[number % len(kinds)], number >> 8)
        for value, number in zip(values.to_pylist(), numbers, strict=True)
    ]
    return pa.array(spoiled, pa.binary())


def _spoil(value: bytes, kind: Spoiling, number: int) -> bytes:
    header, body = value[:HEADER_BYTES], value[HEADER_BYTES:]
    match kind:
        case Spoiling.WRONG_MAGIC:
            return _WRONG_MAGIC + value[1:]
        case Spoiling.UNKNOWN_SCHEMA:
            return frame_header(UNKNOWN_SCHEMA_ID) + body
        case _:
            return header + _spoil_body(body, kind, number)


def _spoil_body(body: bytes, kind: Spoiling, number: int) -> bytes:
    if kind is Spoiling.TRUNCATED_BODY:
        return body[: _SHORTEST_CUT + number % (_LONGEST_CUT - _SHORTEST_CUT + 1)]
    junk = np.random.default_rng(number).bytes(1 + number % _MAX_JUNK)
    return _IMPOSSIBLE_TAG + junk
