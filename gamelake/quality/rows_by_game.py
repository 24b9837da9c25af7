"""The columns of a batch as rules look at them: whole, one game's, or by their few different texts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.quality.vectors import Columns, Kernel

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# A column with fewer different texts than one row in so many is looked at by its texts.
_REPEATED = 8


@dataclass(frozen=True, slots=True)
class _Texts:
    """The different texts of a column, null the last of them, and which of them each row has."""

    values: pa.Array
    which: Ints


@dataclass
class RowsByGame:
    """The rows of one batch; a row is of the game with its code, of none if that is negative.

    `unlike` are the columns whose texts differ from row to row; what is found out of them is remembered there.
    """

    columns: Mapping[str, pa.Array]
    codes: Ints
    unlike: set[str]
    _texts: dict[str, _Texts | None] = field(default_factory=dict)
    _order: Ints | None = None
    _bounds: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _in_order: dict[str, pa.Array] = field(default_factory=dict)

    @cached_property
    def _games(self) -> int:
        """How many games have rows here."""
        return int(np.count_nonzero(np.bincount(self.codes[self.codes >= 0])))

    def broken(self, kernel: Kernel, names: tuple[str, ...], games: frozenset[int] | None) -> Flags | None:
        """The rows of some games, of all if they are None, for which a condition is false; None if there are none."""
        texts = self._repeated(names[0]) if len(names) == 1 else None
        if texts is not None:
            flags = _false(kernel({names[0]: texts.values}))
            return None if flags is None else self._of(flags[texts.which], games)
        if games is None or 2 * len(games) > self._games:
            flags = _false(kernel(self.columns))
            return None if flags is None else self._of(flags, games)
        return self._game_by_game(kernel, names, games)

    def _of(self, flags: Flags, games: frozenset[int] | None) -> Flags | None:
        flags = flags & ((self.codes >= 0) if games is None else np.isin(self.codes, list(games)))
        return flags if flags.any() else None

    def _game_by_game(self, kernel: Kernel, names: tuple[str, ...], games: frozenset[int]) -> Flags | None:
        result: Flags | None = None
        for code in sorted(games):
            order, start, stop = self._rows_of(code)
            if start == stop:
                continue
            flags = _false(kernel(self._part(names, start, stop)))
            if flags is not None:
                result = np.zeros(len(self.codes), np.bool_) if result is None else result
                result[order[start:stop][flags]] = True
        return result

    def _rows_of(self, code: int) -> tuple[Ints, int, int]:
        """The rows in the order of their games, and which part of them is of one game."""
        if self._order is None:
            # numpy's stable sort is a radix sort for 16 bits.
            small = self.codes.astype(np.int16) if self.codes.max(initial=0) < 2**15 else self.codes
            self._order = np.argsort(small, kind="stable")
            self._bounds = np.searchsorted(self.codes[self._order], np.arange(self.codes.max(initial=-1) + 2))
        if code + 1 >= len(self._bounds):
            return self._order, 0, 0
        return self._order, int(self._bounds[code]), int(self._bounds[code + 1])

    def _part(self, names: tuple[str, ...], start: int, stop: int) -> Columns:
        for name in names:
            if name not in self._in_order:
                self._in_order[name] = self.columns[name].take(pa.array(self._order))
        return {name: self._in_order[name].slice(start, stop - start) for name in names}

    def _repeated(self, name: str) -> _Texts | None:
        if name not in self._texts:
            self._texts[name] = None if name in self.unlike else self._texts_of(name)
        return self._texts[name]

    def _texts_of(self, name: str) -> _Texts | None:
        column = self.columns[name]
        if not pa.types.is_string(column.type):
            return None
        encoded = column.dictionary_encode()
        if len(encoded.dictionary) * _REPEATED > max(len(column), _REPEATED * _REPEATED):
            self.unlike.add(name)
            return None
        values = pa.concat_arrays([encoded.dictionary, pa.nulls(1, pa.string())])
        return _Texts(values, encoded.indices.fill_null(len(values) - 1).to_numpy())


def _false(result: pa.Array) -> Flags | None:
    """Where a condition is false, None if nowhere: what comes to null holds."""
    if not result.false_count:
        return None
    return np.asarray(~result.fill_null(True).to_numpy(zero_copy_only=False), np.bool_)
