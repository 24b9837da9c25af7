"""The current state of all players of a game, in arrays indexed by the players' permanent numbers.

A player takes about 120 bytes. Changes of gold's player days are added. A player is computed again from all days only
if a day that decides a trait, such as the first day, is lost.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.model.arrays import Days, Flags, Ints
from gamelake.serving.kpis.numbers import Numbers
from gamelake.serving.kpis.tables import MONTH
from gamelake.serving.players.statements import SUMS, TEXTS, TRAITS, WINDOWS, Trait
from gamelake.serving.players.tables import PLAYER_COLUMNS

_NO_DAY, _NO_TEXT, _NO_KEY = np.int32(-(2**31)), np.int32(-1), np.int64(-1)
_EMPTY = {
    "key": _NO_KEY,
    **{name: np.int64(0) for name in SUMS},
    **{f"{trait.name}_day": _NO_DAY for trait in TRAITS},
    **dict.fromkeys(TEXTS, _NO_TEXT),
}


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of changes.

    Attributes:
        numbers: uint32, ascending, the numbers of players whose state has changed or was removed.
        again: int64, the keys of players who must be computed again from all days.
    """

    numbers: Numbers
    again: Ints


@dataclass(slots=True)
class GameState:
    """The state of all players of one game.

    Attributes:
        game: the game's title.
        today: the game's day, to which the windows belong, in days since 1970.
    """

    game: str
    today: int
    _columns: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    _texts: dict[str, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin without players."""
        self._columns = {name: np.full(0, empty) for name, empty in _EMPTY.items()}
        self._texts = {name: {} for name in TEXTS}

    @property
    def numbers(self) -> Numbers:
        """The numbers of all players: uint32, ascending."""
        return np.flatnonzero(self._columns["key"] != _NO_KEY).astype(np.uint32)

    def places_of(self, keys: Ints) -> Numbers:
        """Return the numbers of the players who have a state: uint32, ascending."""
        return np.flatnonzero(np.isin(self._columns["key"], keys)).astype(np.uint32)

    def remove(self, numbers: Numbers) -> None:
        """Forget players.

        Args:
            numbers: uint32, their numbers.
        """
        for name, empty in _EMPTY.items():
            self._columns[name][numbers] = empty

    def apply(self, numbers: Numbers, known: Flags, changes: pa.Table) -> Applied:
        """Add changes of players.

        Args:
            numbers: uint32 of shape (n,), the players' numbers.
            known: bool of shape (n,), False for a player without a number.
            changes: n rows of `statements.CHANGES` of this game.

        Returns:
            The players who have changed, and the players whose changes were not added. The caller must remove the
            latter, and add all their days.
        """
        keys = changes.column("key").to_numpy()
        self._grow(int(numbers.max(initial=0)) + 1)
        own = self._columns["key"][numbers]
        stood = changes.column("stood").to_numpy(zero_copy_only=False)
        # A player who was erased and returns has a new number, not the one of the removed rows.
        is_apt = known & ((own == keys) | ((own == _NO_KEY) & ~stood))
        for trait in TRAITS:
            is_apt &= ~self._has_lost(trait, numbers, changes)
        numbers, again = numbers[is_apt], keys[~is_apt]
        apt = changes.filter(pa.array(is_apt))
        self._columns["key"][numbers] = keys[is_apt]
        for name in SUMS:
            self._columns[name][numbers] += apt.column(name).to_numpy()
        for trait in TRAITS:
            self._decide(trait, numbers, apt)
        self.remove(numbers[self._columns["events"][numbers] == 0])
        return Applied(np.sort(numbers), again)

    def set_windows(self, today: int, numbers: Numbers, sums: pa.Table) -> None:
        """Begin a day: replace the window sums of all players.

        Args:
            today: the day.
            numbers: uint32 of shape (n,), the numbers of the players with activity in the windows.
            sums: n rows of `statements.RECENT_SUMS`.
        """
        self.today = today
        for name in WINDOWS:
            self._columns[name][:] = 0
            self._columns[name][numbers] = sums.column(name).to_numpy()

    def players(self, numbers: Numbers) -> pa.Table:
        """Return some players as rows with the columns of `PLAYER_COLUMNS` and `number` (uint32)."""
        numbers = numbers[numbers < len(self._columns["key"])]
        numbers = numbers[self._columns["key"][numbers] != _NO_KEY]
        found: dict[str, pa.Array] = {"number": pa.array(numbers)}
        for name in TEXTS:
            found[name] = self._text(name, numbers)
        for name in ("first_seen", "last_seen", "last_purchase"):
            found[f"days_since_{name}"] = self._days_since(name, numbers)
        found["payer_state"] = self._payer_state(numbers)
        for name in SUMS:
            values = self._columns[name][numbers]
            is_money = pa.types.is_decimal(PLAYER_COLUMNS[name][0])
            found[name] = _money(values) if is_money else pa.array(values)
        return pa.table({name: found[name] for name in ("number", *PLAYER_COLUMNS)})

    def _grow(self, count: int) -> None:
        missing = count - len(self._columns["key"])
        if missing > 0:
            # The reserve avoids copying all arrays for each new player.
            reserve = max(missing, len(self._columns["key"]) // 8)
            for name, empty in _EMPTY.items():
                self._columns[name] = np.concatenate([self._columns[name], np.full(reserve, empty)])

    def _has_lost(self, trait: Trait, numbers: Numbers, changes: pa.Table) -> Flags:
        """Return True for each player who may have lost the day that decides a trait."""
        day = self._columns[f"{trait.name}_day"][numbers]
        since, until = (_days(changes, f"{trait.name}_lost_{end}") for end in ("from", "to"))
        is_gone = self._columns["events"][numbers] + changes.column("events").to_numpy() == 0
        lost: Flags = (since != _NO_DAY) & (since <= day) & (day <= until) & ~is_gone
        return lost

    def _decide(self, trait: Trait, numbers: Numbers, changes: pa.Table) -> None:
        name = f"{trait.name}_day"
        day, former = _days(changes, name), self._columns[name][numbers]
        is_newer = (day != _NO_DAY) & ((day >= former) if trait.is_last else ((day <= former) | (former == _NO_DAY)))
        self._columns[name][numbers[is_newer]] = day[is_newer]
        if trait.column:
            codes = self._codes(trait.name, changes.column(trait.name))
            self._columns[trait.name][numbers[is_newer]] = codes[is_newer]

    def _codes(self, name: str, values: pa.ChunkedArray) -> Days:
        coded = values.combine_chunks().dictionary_encode()
        known = self._texts[name]
        own = [known.setdefault(text, len(known)) for text in coded.dictionary.to_pylist()]
        places = coded.indices.fill_null(len(own)).to_numpy()
        codes: Days = np.array([*own, _NO_TEXT], np.int32)[places]
        return codes

    def _text(self, name: str, numbers: Numbers) -> pa.Array:
        codes = self._columns[name][numbers]
        known = pa.array(self._texts[name], pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes == _NO_TEXT), known)

    def _days_since(self, name: str, numbers: Numbers) -> pa.Array:
        days = self._columns[f"{name}_day"][numbers]
        # A game's clock may be ahead of the platform's.
        return pa.array(np.maximum(self.today - days.astype(np.int64), 0), mask=days == _NO_DAY)

    def _payer_state(self, numbers: Numbers) -> pa.Array:
        purchases, last = self._columns["purchases"][numbers], self._columns["last_purchase_day"][numbers]
        has_lapsed = self.today - last.astype(np.int64) >= MONTH
        states = np.select([purchases == 0, has_lapsed, purchases == 1], [0, 3, 1], 2).astype(np.int32)
        return pa.DictionaryArray.from_arrays(pa.array(states), pa.array(PAYER_STATES))


PAYER_STATES = ("none", "first_time", "repeat", "lapsed")


def _days(changes: pa.Table, name: str) -> Days:
    days = changes.column(name).combine_chunks().cast(pa.int32())
    found: Days = days.fill_null(int(_NO_DAY)).to_numpy()
    return found


def _money(micros: Ints) -> pa.Array:
    """Return millionths as decimal(18, 6)."""
    wide = np.empty((len(micros), 2), np.int64)
    wide[:, 0], wide[:, 1] = micros, np.where(micros < 0, -1, 0)
    return pa.Array.from_buffers(pa.decimal128(18, 6), len(micros), [None, pa.py_buffer(wide.tobytes())])


def of_each_game(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Split rows that are sorted by `game_name` into one slice for each game."""
    names = rows.column("game_name").combine_chunks()
    start = 0
    for run in pa.compute.run_end_encode(names).run_ends.to_pylist() if len(names) else []:
        yield names[start].as_py(), rows.slice(start, run - start)
        start = run


def merged(sets: Sequence[Numbers]) -> Numbers:
    """Return the numbers of all sets, each once, ascending."""
    return np.unique(np.concatenate([np.zeros(0, np.uint32), *sets])).astype(np.uint32)


def as_days(days: Mapping[str, int]) -> pa.Table:
    """Return the relation `clock`, in the order of `days`: game_name (string), today (date32)."""
    today = pa.array(days.values(), pa.int32()).cast(pa.date32())
    return pa.table({"game_name": pa.array(days, pa.string()), "today": today})
