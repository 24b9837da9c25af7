"""Records grouped by game as the SDKs send them: length-delimited messages, without a Python object per event."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.model.errors import ContractError
from tools.simulator.traffic import TrafficBatch

_NOTHING = pa.scalar(b"", pa.binary())
_BITS, _MORE, _SHIFT = 0x7F, 0x80, 7
# Lengths of three bytes reach 2 MiB, which is above the gateway's limit.
_WIDTHS = 3


@dataclass(frozen=True, slots=True)
class SdkPayload:
    """Events of one game's SDK, in their order; the arrays have one row per event.

    Attributes:
        game: index of the game whose SDK sends them.
        data: Protobuf messages, each behind its length as a varint.
        event_ids: shape (n, 16), random bytes of the UUIDs.
        copies: whether the event was in an earlier payload, or earlier in this one.
        players: indices into the `Population`.
    """

    game: int
    data: bytes
    event_ids: npt.NDArray[np.uint8]
    copies: npt.NDArray[np.bool_]
    players: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Number of events."""
        return len(self.copies)


def payloads_by_game(batch: TrafficBatch, home_games: npt.NDArray[np.int16], most: int) -> Iterator[SdkPayload]:
    """Group a batch's records by the game that sends them.

    Args:
        batch: records without frames.
        home_games: index of the game, one per event of the batch.
        most: the largest number of events in a payload.
    """
    games = home_games[batch.origin]
    order = np.argsort(games, kind="stable")
    delimited = _length_delimited(batch.values.take(pa.array(order)))
    ends, data = _offsets(delimited), memoryview(delimited.buffers()[2])
    games, origin = games[order], batch.origin[order]
    copies = order >= len(batch.events)
    for start, stop in _ranges(games, most):
        yield SdkPayload(
            game=int(games[start]),
            data=bytes(data[ends[start] : ends[stop]]),
            event_ids=batch.events.event_id[origin[start:stop]],
            copies=copies[start:stop],
            players=batch.events.player[origin[start:stop]],
        )


def _ranges(games: npt.NDArray[np.int16], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows (start, end) of one game each, `most` rows at most."""
    borders = [0, *(np.flatnonzero(np.diff(games)) + 1).tolist(), len(games)]
    for start, end in pairwise(borders):
        for at in range(start, end, most):
            yield at, min(at + most, end)


def _length_delimited(messages: pa.BinaryArray) -> pa.BinaryArray:
    lengths = np.diff(_offsets(messages))
    if len(lengths) and lengths.max() >= 1 << _SHIFT * _WIDTHS:
        raise ContractError("an event is larger than the gateway's limit")
    widths = 1 + (lengths >> _SHIFT > 0) + (lengths >> 2 * _SHIFT > 0)
    digits = np.stack([lengths >> _SHIFT * place & _BITS for place in range(_WIDTHS)], axis=1)
    is_written = np.arange(_WIDTHS) < widths[:, None]
    digits |= np.where(np.arange(_WIDTHS) < widths[:, None] - 1, _MORE, 0)
    written = np.ascontiguousarray(digits[is_written].astype(np.uint8))
    ends = np.concatenate([[0], np.cumsum(widths)]).astype(np.int32)
    prefixes = pa.BinaryArray.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(ends), pa.py_buffer(written)])
    return pc.binary_join_element_wise(prefixes, messages, _NOTHING)


def _offsets(values: pa.BinaryArray) -> npt.NDArray[np.int32]:
    ends = np.frombuffer(values.buffers()[1], dtype=np.int32)
    return ends[values.offset : values.offset + len(values) + 1]
