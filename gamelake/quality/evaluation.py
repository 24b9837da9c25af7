"""Evaluates all rules on a batch of rows: which rows break which rule.

A condition that is NULL counts as satisfied, as does one that can't be computed for a row, such as a cast of text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import duckdb
import numpy as np
import pyarrow as pa

from gamelake.model.arrays import Flags, Ints
from gamelake.quality.checking import EVENT_DATE, CheckedRules
from gamelake.quality.engine import ROWS, engine, rows_without_zones
from gamelake.quality.rules import QualityRule
from gamelake.quality.vectors import Columns, Kernel, NoKernelError, kernel_of

# A column with fewer distinct texts than one per this many rows is evaluated once per distinct text.
_REPEATED = 8


@dataclass(frozen=True, slots=True)
class _Texts:
    """The distinct texts of a column (string, null is the last), and their index for each row (int64)."""

    values: pa.Array
    which: Ints


@dataclass
class RowsByGame:
    """The rows of one batch.

    Attributes:
        columns: by lower-case name, one element per row.
        codes: the game of each row as a number (int64); a row with a negative code belongs to no game.
        unlike: columns with mostly distinct texts; found ones are added, for the next batches.
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
        """The number of games with rows."""
        return int(np.count_nonzero(np.bincount(self.codes[self.codes >= 0])))

    def broken(self, kernel: Kernel, names: tuple[str, ...], games: frozenset[int] | None) -> Flags | None:
        """Return the rows for which a condition is false (bool, one per row); None if there are none.

        Args:
            kernel: the condition.
            names: the columns of the condition, in lower case.
            games: the codes of the games that it applies to; None for all.
        """
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
        """The row numbers in the order of games, and the start and end of one game in them."""
        if self._order is None:
            # numpy's stable sort is a radix sort for 16-bit integers.
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
    """Where a condition is false, None if nowhere; null counts as true."""
    if not result.false_count:
        return None
    return np.asarray(~result.fill_null(True).to_numpy(zero_copy_only=False), np.bool_)


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule, and the rows that break it (bool, one per row)."""

    rule: QualityRule
    rows: Flags


@dataclass(frozen=True, slots=True)
class _Plan:
    """The way to evaluate each rule on rows of one schema: by a kernel, by the engine, or not, if the types don't fit.

    `unlike` are columns with mostly distinct texts.
    """

    by_kernel: Mapping[QualityRule, Kernel]
    by_engine: tuple[QualityRule, ...]
    unjudged: tuple[QualityRule, ...]
    unlike: set[str] = field(default_factory=set)


@dataclass
class Evaluator:
    """Evaluates rules; keeps for each schema how its columns are evaluated.

    A column that the rows lack is NULL.
    """

    checked: CheckedRules
    _plans: dict[pa.Schema, _Plan] = field(default_factory=dict)
    _connection: duckdb.DuckDBPyConnection = field(default_factory=engine)

    def broken(self, rows: pa.RecordBatch, games: tuple[str, ...], codes: Ints) -> list[BrokenRule]:
        """Return the rules that some rows break.

        Args:
            rows: in the columns of silver.
            games: the names of games.
            codes: the index in `games` of each row's game (int64, one per row); negative rows are not evaluated.
        """
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

    def not_evaluated(self, rows: pa.RecordBatch) -> tuple[QualityRule, ...]:
        """Return the rules that can't be evaluated on rows with these columns: the types differ from the known ones."""
        return self._plan(rows.schema, self._columns(rows.slice(0, 0))).unjudged

    @cached_property
    def _wanted(self) -> frozenset[str]:
        return frozenset(name for rule in self.checked.rules.rules for name in rule.columns)

    def _columns(self, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        """The columns that the rules need, by lower-case name."""
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
                (by_engine if self._can_evaluate(rule) else unjudged).append(rule)
        return _Plan(kernels, tuple(by_engine), tuple(unjudged))

    def _give(self, columns: Mapping[str, pa.Array]) -> None:
        self._connection.register(ROWS, rows_without_zones(pa.RecordBatch.from_pydict(dict(columns))))

    def _can_evaluate(self, rule: QualityRule) -> bool:
        try:
            return str(self._connection.sql(f"SELECT {rule.expect} FROM {ROWS}").types[0]) == "BOOLEAN"  # noqa: S608 # checked when it was read
        except duckdb.Error:
            return False

    def _by_engine(
        self, rules: Sequence[QualityRule], columns: Mapping[str, pa.Array], games: tuple[str, ...], codes: Ints
    ) -> dict[QualityRule, Flags]:
        """The rows that break rules without a kernel."""
        if not rules:
            return {}
        wanted = {name for rule in rules for name in rule.columns}
        self._give({name: columns[name] for name in wanted})
        try:
            flags = self._query([rule.expect for rule in rules])
        except duckdb.Error:
            # A condition can't be computed for some row; with TRY, which is slower, it is NULL there.
            flags = self._query([f"TRY({rule.expect})" for rule in rules])
        found = {}
        for rule, broken in zip(rules, flags, strict=True):
            of = _codes(rule, games)
            rows = broken & ((codes >= 0) if of is None else np.isin(codes, list(of)))
            if rows.any():
                found[rule] = rows
        return found

    def _query(self, conditions: Sequence[str]) -> list[Flags]:
        """Where each condition is false."""
        wanted = ", ".join(f"coalesce(NOT ({each}), false) AS r{at}" for at, each in enumerate(conditions))
        result = self._connection.sql(f"SELECT {wanted} FROM {ROWS}").to_arrow_table()  # noqa: S608 # checked when they were read
        return [column.to_numpy(zero_copy_only=False).astype(np.bool_) for column in result.columns]


@lru_cache(maxsize=4096)
def _codes(rule: QualityRule, games: tuple[str, ...]) -> frozenset[int] | None:
    """The codes of the games that a rule applies to; None for all."""
    return frozenset(code for code, game in enumerate(games) if rule.applies_to(game)) if rule.games else None
