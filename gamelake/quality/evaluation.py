"""Evaluates all rules over rows at once: which rows break which rule.

A condition that comes to NULL holds, and so does one that can't be computed of a row, as a text that is no number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.quality.checking import EVENT_DATE, CheckedRules
from gamelake.quality.engine import ROWS, engine, without_zones
from gamelake.quality.rules import QualityRule
from gamelake.quality.vectors import Columns, Kernel, NoKernelError, kernel_of

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


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """The rows that break one rule."""

    rule: QualityRule
    rows: Flags


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the rules judge rows of one schema: by kernels, by the engine, or not at all as the types don't fit.

    `unlike` are columns whose texts differ from row to row.
    """

    by_kernel: Mapping[QualityRule, Kernel]
    by_engine: tuple[QualityRule, ...]
    unjudged: tuple[QualityRule, ...]
    unlike: set[str] = field(default_factory=set)


@dataclass
class Evaluator:
    """Evaluates rules; remembers how the columns of each schema are judged.

    A column that the rows lack is NULL.
    """

    checked: CheckedRules
    _plans: dict[pa.Schema, _Plan] = field(default_factory=dict)
    _connection: duckdb.DuckDBPyConnection = field(default_factory=engine)

    def broken(self, rows: pa.RecordBatch, games: tuple[str, ...], codes: Ints) -> list[BrokenRule]:
        """The rules that some rows break; a row is of `games[code]`, of none if its code is negative."""
        columns = self._columns(rows)
        plan = self._plan(rows.schema, columns)
        by_game = RowsByGame(columns, codes, plan.unlike)
        found = {
            rule: flags
            for rule, kernel in plan.by_kernel.items()
            if (flags := by_game.broken(kernel, rule.columns, _codes(rule, games))) is not None
        }
        found |= self._by_engine(plan.by_engine, columns, games, codes)
        return [BrokenRule(rule, found[rule]) for rule in self.checked.rules.rules if rule in found]

    def unjudged(self, rows: pa.RecordBatch) -> tuple[QualityRule, ...]:
        """The rules that the columns of rows can't be judged by, as they have other types than were known."""
        return self._plan(rows.schema, self._columns(rows.slice(0, 0))).unjudged

    @cached_property
    def _wanted(self) -> frozenset[str]:
        return frozenset(name for rule in self.checked.rules.rules for name in rule.columns)

    def _columns(self, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        """What the rules ask for of the rows, by names in lower case."""
        wanted = self._wanted
        have = {name.lower(): name for name in rows.schema.names}
        columns = {name: rows.column(have[name]) for name in wanted if name in have}
        for each in self.checked.columns:
            if each.name.lower() in wanted and each.name.lower() not in have:
                columns[each.name.lower()] = pa.nulls(len(rows), each.type)
        if EVENT_DATE in wanted:
            columns[EVENT_DATE] = rows.column(have["event_time"]).cast(pa.date32())
        return columns

    def _plan(self, schema: pa.Schema, columns: Mapping[str, pa.Array]) -> _Plan:
        if schema not in self._plans:
            self._plans[schema] = self._planned({name: column.slice(0, 0) for name, column in columns.items()})
        return self._plans[schema]

    def _planned(self, columns: Mapping[str, pa.Array]) -> _Plan:
        self._give(columns)
        types = {name: column.type for name, column in columns.items()}
        kernels: dict[QualityRule, Kernel] = {}
        by_engine: list[QualityRule] = []
        unjudged: list[QualityRule] = []
        for rule in self.checked.rules.rules:
            try:
                kernels[rule] = kernel_of(rule.expect, types)
            except (NoKernelError, duckdb.DataError):
                (by_engine if self._can_judge(rule) else unjudged).append(rule)
        return _Plan(kernels, tuple(by_engine), tuple(unjudged))

    def _give(self, columns: Mapping[str, pa.Array]) -> None:
        self._connection.register(ROWS, without_zones(pa.RecordBatch.from_pydict(dict(columns))))

    def _can_judge(self, rule: QualityRule) -> bool:
        try:
            return str(self._connection.sql(f"SELECT {rule.expect} FROM {ROWS}").types[0]) == "BOOLEAN"  # noqa: S608 # checked when it was read
        except duckdb.Error:
            return False

    def _by_engine(
        self, rules: Sequence[QualityRule], columns: Mapping[str, pa.Array], games: tuple[str, ...], codes: Ints
    ) -> dict[QualityRule, Flags]:
        """The rows that break rules for which there is no kernel."""
        if not rules:
            return {}
        wanted = {name for rule in rules for name in rule.columns}
        self._give({name: columns[name] for name in wanted})
        try:
            flags = self._asked([rule.expect for rule in rules])
        except duckdb.Error:
            # A condition can't be computed of some row; this way it is NULL there, which takes longer.
            flags = self._asked([f"TRY({rule.expect})" for rule in rules])
        found = {}
        for rule, broken in zip(rules, flags, strict=True):
            of = _codes(rule, games)
            rows = broken & ((codes >= 0) if of is None else np.isin(codes, list(of)))
            if rows.any():
                found[rule] = rows
        return found

    def _asked(self, conditions: Sequence[str]) -> list[Flags]:
        """Where each condition is false."""
        wanted = ", ".join(f"coalesce(NOT ({each}), false) AS r{at}" for at, each in enumerate(conditions))
        result = self._connection.sql(f"SELECT {wanted} FROM {ROWS}").to_arrow_table()  # noqa: S608 # checked when they were read
        return [column.to_numpy(zero_copy_only=False).astype(np.bool_) for column in result.columns]


@lru_cache(maxsize=4096)
def _codes(rule: QualityRule, games: tuple[str, ...]) -> frozenset[int] | None:
    """The codes of the games whose rows a rule judges, None if all are."""
    return frozenset(code for code, game in enumerate(games) if rule.judges(game)) if rule.games else None
