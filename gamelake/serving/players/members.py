"""The members of segments as sets of players' numbers, and the differences between two versions of them."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from gamelake.serving.kpis.numbers import Numbers
from gamelake.serving.kpis.sets import as_numbers, as_set

# The members of a game's segments, by segment.
Members = Mapping[str, BitMap]


def with_changes(former: BitMap, computed: Numbers, matching: Numbers) -> BitMap:
    """Return the members of a segment after an evaluation of some players.

    Args:
        former: the members before.
        computed: uint32, the evaluated players.
        matching: uint32, the evaluated players who meet the condition.
    """
    made = (former - as_set(computed)) | as_set(matching)
    made.run_optimize()
    return made


def moved(former: Members, present: Members) -> BitMap:
    """Return the players whose segments have changed."""
    names = former.keys() | present.keys()
    empty = BitMap()
    return BitMap.union(empty, *(former.get(name, empty) ^ present.get(name, empty) for name in names))


def segments_of(players: Numbers, members: Members) -> pa.Array:
    """Return the names of each player's segments, sorted: list<string>, in the order of `players`.

    Args:
        players: uint32, ascending.
        members: the members of the segments of their game.
    """
    names = sorted(members)
    is_in = np.zeros((len(players), len(names)), np.bool_)
    for place, name in enumerate(names):
        is_in[:, place] = np.isin(players, as_numbers(members[name]), assume_unique=True)
    offsets = np.concatenate([[0], np.cumsum(is_in.sum(axis=1))]).astype(np.int32)
    codes = np.nonzero(is_in)[1].astype(np.int32)
    values = pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string())).cast(pa.string())
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def read_members(rows: pa.Table) -> dict[str, BitMap]:
    """Read the members of a game's segments.

    Args:
        rows: rows of the table of segments of one game, in any order.
    """
    sets: Sequence[bytes] = rows.column("members").to_pylist()
    return dict(zip(rows.column("segment").to_pylist(), map(BitMap.deserialize, sets), strict=True))
