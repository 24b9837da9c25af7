"""From parcels to what each game's SDK hands over: messages behind their lengths, without a Python object per event."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.model.errors import ContractError
from tools.simulator.traffic import Parcel

_NOTHING = pa.scalar(b"", pa.binary())
_BITS, _MORE, _SHIFT = 0x7F, 0x80, 7
# Lengths of three bytes reach 2 MiB, which no gateway takes.
_WIDTHS = 3


@dataclass(frozen=True, slots=True)
class Packet:
    """Events of one game's SDK, in their order.

    Args:
        game: the number of the game whose SDK sends them.
        payload: Protobuf messages, each behind its length.
        event_ids: 16 bytes each.
        copies: which of them were in an earlier packet, or in this one, already.
        players: the numbers of who plays.
    """

    game: int
    payload: bytes
    event_ids: npt.NDArray[np.uint8]
    copies: npt.NDArray[np.bool_]
    players: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Count the events."""
        return len(self.copies)


def packets(parcel: Parcel, home_games: npt.NDArray[np.int16], most: int) -> Iterator[Packet]:
    """Sort a parcel's records by the game that sends them, so many at a time at most.

    Args:
        parcel: records without frames.
        home_games: the game of each of the parcel's moments.
        most: events in a packet.
    """
    games = home_games[parcel.origin]
    order = np.argsort(games, kind="stable")
    delimited = _behind_their_lengths(parcel.values.take(pa.array(order)))
    ends, data = _offsets(delimited), memoryview(delimited.buffers()[2])
    games, origin = games[order], parcel.origin[order]
    copies = order >= len(parcel.moments)
    for start, stop in _stretches(games, most):
        yield Packet(
            game=int(games[start]),
            payload=bytes(data[ends[start] : ends[stop]]),
            event_ids=parcel.moments.event_id[origin[start:stop]],
            copies=copies[start:stop],
            players=parcel.moments.player[origin[start:stop]],
        )


def _stretches(games: npt.NDArray[np.int16], most: int) -> Iterator[tuple[int, int]]:
    borders = [0, *(np.flatnonzero(np.diff(games)) + 1).tolist(), len(games)]
    for start, end in pairwise(borders):
        for at in range(start, end, most):
            yield at, min(at + most, end)


def _behind_their_lengths(messages: pa.BinaryArray) -> pa.BinaryArray:
    lengths = np.diff(_offsets(messages))
    if len(lengths) and lengths.max() >= 1 << _SHIFT * _WIDTHS:
        raise ContractError("an event is larger than any gateway takes")
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
