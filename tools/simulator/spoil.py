"""Values that no reader can decode, each kind for its own reason."""

from collections.abc import Callable, Sequence
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.wire.framing import HEADER_BYTES, frame_header

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
