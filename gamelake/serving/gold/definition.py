"""Turns a declared aggregate into two statements: one computes partial results, the other merges them.

A column can be merged if its value over all rows follows from its values over parts of them. Counts, sums, minima and
maxima can be merged; a median can't.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from gamelake.contract.aggregates import AggregateSpec, Refresh
from gamelake.model.errors import ContractError

_DIALECT = "duckdb"
_MERGED_BY: Mapping[type[exp.Expr], str] = {exp.Count: "sum", exp.Sum: "sum", exp.Min: "min", exp.Max: "max"}
Join: TypeAlias = Literal["SEMI", "ANTI"]
PARTITION, PLAYER = "event_date", "gamer_id"
# The newest version: 1.10 comes after 1.9. This function exists only here; any column of the contract may use it.
_MAX_VERSION = "max_version"
# Numbers are padded to ten digits. A pre-release sorts before its release since '-' sorts before '.'. 1.0 and 1.00 sort
# as strings.
_VERSION_ORDER = r"""regexp_replace(regexp_replace({0}, '([0-9]+)', '0000000000\1', 'g'),
    '0*([0-9]{{10}})', '\1', 'g') || '. ' || {0}"""
# The key `event_date: reporting_date` is the day in the game's time zone. Its SQL calls a function of this name, which
# the caller defines in the engine, so that the definition does not depend on zones.
REPORTING_DATE = "reporting_date"
_READ_BY_REPORTING_DATE = ("game_name", "event_time", PARTITION)
# No column of the contract can have this name.
UNFIT = "(unfit)"


@dataclass(frozen=True, slots=True)
class AggregateDefinition:
    """The SQL of one aggregate, for DuckDB. The caller registers the relations whose names the methods take.

    Attributes:
        spec: the aggregate's declaration in the contract.
        key_columns: the SQL of each key column, over one row of silver.
        columns: the SQL of each other column, as the contract has it.
        where: the SQL of the condition that an event must meet; "" if every event counts.
        merged_by: for each column, the function that merges its values over parts; empty if the table is refreshed by
            partition.
        reads: the columns of silver that the aggregate reads.
        safe_columns: `columns`, with null for a value that a cast can't convert, so that one value stops no table.
        unfit: a condition that is true for rows with such a value.
    """

    spec: AggregateSpec
    key_columns: Mapping[str, str]
    columns: Mapping[str, str]
    merged_by: Mapping[str, str]
    reads: frozenset[str]
    safe_columns: Mapping[str, str]
    unfit: str
    where: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the key columns, which identify a row."""
        return self.spec.group_by

    @property
    def is_by_player(self) -> bool:
        """True if each row belongs to one player, so that an erasure deletes whole rows of the table itself."""
        return PLAYER in self.keys

    @property
    def is_by_reporting_day(self) -> bool:
        """True if `event_date` is the day in the game's time zone, not silver's day in UTC."""
        return self.spec.keys.get(PARTITION) == REPORTING_DATE

    @property
    def fingerprint(self) -> str:
        """A hash of everything in the definition that the table's rows depend on."""
        parts = [list(self.key_columns.items()), list(self.columns.items()), self.spec.refresh.value]
        text = json.dumps([*parts, self.where] if self.where else parts)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def over(self, source: str) -> str:
        """Return the statement that aggregates a relation's rows."""
        return self._over(source, self.safe_columns)

    def counting(self, source: str) -> str:
        """Return the statement that aggregates a relation's rows and counts the unfit values in the column `UNFIT`."""
        return self._over(source, {**self.safe_columns, UNFIT: f"count(*) FILTER (WHERE {self.unfit})"})

    def _over(self, source: str, columns: Mapping[str, str]) -> str:
        keys = (f"{sql} AS {quoted(name)}" if name in self.spec.keys else sql for name, sql in self.key_columns.items())
        given = (f"{sql} AS {quoted(name)}" for name, sql in columns.items())
        where = f" WHERE {self.where}" if self.where else ""
        return f"SELECT {', '.join([*keys, *given])} FROM {source}{where} GROUP BY ALL"  # noqa: S608 # the contract's SQL

    def rows_of(self, keys: str, source: str) -> str:
        """Return the statement for a source relation's rows whose keys are in the relation `keys`."""
        return _joined("SEMI", source, keys, {key: _qualified(sql, "r") for key, sql in self.key_columns.items()})

    def aggregates(self, kind: Join, rows: str, keys: str) -> str:
        """Return the statement for aggregate rows whose keys are in the relation `keys` (SEMI), or are not (ANTI)."""
        return _joined(kind, rows, keys, {key: f"r.{quoted(key)}" for key in self.keys})

    def merging(self, parts: str) -> str:
        """Return the statement that merges aggregates of parts, in one relation, into one row per key."""
        merged = (f"{_call(way, quoted(name))} AS {quoted(name)}" for name, way in self.merged_by.items())
        keys = ", ".join(map(quoted, self.keys))
        return f"SELECT {keys}, {', '.join(merged)} FROM {parts} GROUP BY {keys}"  # noqa: S608 # see above


def _joined(kind: Join, rows: str, keys: str, key_columns: Mapping[str, str]) -> str:
    same = " AND ".join(f"{sql} IS NOT DISTINCT FROM k.{quoted(key)}" for key, sql in key_columns.items())
    return f"SELECT r.* FROM {rows} r {kind} JOIN {keys} k ON {same}"  # noqa: S608 # the contract's SQL


def _qualified(sql: str, relation: str) -> str:
    """Qualify the columns of an expression with a relation's name, since other relations have the same column names."""

    def of_relation(node: exp.Expr) -> exp.Expr:
        # The parser takes the field of a struct for a table's column.
        return exp.Dot.build([exp.to_identifier(relation), *node.parts]) if isinstance(node, exp.Column) else node

    return sqlglot.parse_one(sql, dialect=_DIALECT).transform(of_relation).sql(dialect=_DIALECT)


def _root(column: exp.Column) -> str:
    """Return the column of silver that a column, or a field of a struct, is in."""
    return str(column.parts[0].name)


def quoted(name: str) -> str:
    """Quote a column's name for SQL."""
    return f'"{name}"'


def define(spec: AggregateSpec) -> AggregateDefinition:
    """Parse an aggregate's SQL.

    Raises:
        ContractError: a column is not an aggregate, or can't be merged though the table is refreshed by merging, or a
            key is not in `group_by` or not an expression over one event; names it.
    """
    if spec.refresh is Refresh.PARTITION and PARTITION not in spec.group_by:
        raise ContractError(f"the aggregate '{spec.name}' is refreshed by partition: it must be grouped by {PARTITION}")
    key_trees = _parsed_keys(spec)
    parsed = {name: _parsed(spec.name, name, sql) for name, sql in spec.sql.items()}
    merged_by = {}
    if spec.refresh is Refresh.MERGE:
        merged_by = {name: _merging(spec.name, name, tree) for name, tree in parsed.items()}
    where = [_over_one_event(f"'where' of the aggregate '{spec.name}'", spec.where)] if spec.where else []
    trees = [*key_trees.values(), *parsed.values(), *where]
    casts = dict.fromkeys(_fails(cast) for tree in trees for cast in tree.find_all(exp.Cast) if _fails(cast))
    return AggregateDefinition(
        spec,
        key_columns=_sql_of(key_trees, _safe),
        columns=_sql_of(parsed),
        merged_by=merged_by,
        reads=frozenset(_root(column) for tree in trees for column in tree.find_all(exp.Column)),
        safe_columns=_sql_of(parsed, _safe),
        unfit=" OR ".join(casts) or "false",
        where="".join(tree.transform(_safe).sql(dialect=_DIALECT) for tree in where),
    )


def _sql_of(trees: Mapping[str, exp.Expr], change: Callable[[exp.Expr], exp.Expr] | None = None) -> Mapping[str, str]:
    changed = trees if change is None else {name: tree.transform(change) for name, tree in trees.items()}
    return {name: tree.sql(dialect=_DIALECT) for name, tree in changed.items()}


def _call(function: str, argument: str) -> str:
    """Return the call of an aggregate function with one argument, in DuckDB's SQL."""
    if function == _MAX_VERSION:
        return f"arg_max({argument}, {_VERSION_ORDER.format(argument)})"
    return f"{function}({argument})"


def _with_versions(node: exp.Expr) -> exp.Expr:
    """Replace `max_version`, which DuckDB lacks, with an equivalent expression."""
    if not (isinstance(node, exp.Anonymous) and node.name.lower() == _MAX_VERSION and len(node.expressions) == 1):
        return node
    argument = node.expressions[0].sql(dialect=_DIALECT)
    replaced = sqlglot.parse_one(_call(_MAX_VERSION, argument), dialect=_DIALECT)
    replaced.meta[_MAX_VERSION] = True
    return replaced


def _safe(node: exp.Expr) -> exp.Expr:
    return exp.TryCast(**node.args) if type(node) is exp.Cast else node


def _fails(cast: exp.Cast) -> str:
    """Return the condition that a cast fails; "" if it can't fail or converts an aggregate, not a row's value."""
    if type(cast) is not exp.Cast or cast.find(exp.AggFunc) is not None:
        return ""
    value = cast.this.transform(_safe).sql(dialect=_DIALECT)
    return f"({value} IS NOT NULL AND {_safe(cast).sql(dialect=_DIALECT)} IS NULL)"


def _parsed_keys(spec: AggregateSpec) -> Mapping[str, exp.Expr]:
    """Parse the expression of each key column. A column of silver stands for itself."""
    if unknown := sorted(spec.keys.keys() - set(spec.group_by)):
        raise ContractError(
            f"the key '{unknown[0]}' of the aggregate '{spec.name}' is not in group_by; add it there, or remove it here"
        )
    return {name: _parsed_key(spec, name) for name in spec.group_by}


def _parsed_key(spec: AggregateSpec, key: str) -> exp.Expr:
    if key not in spec.keys:
        return exp.column(key, quoted=True)
    if (key, spec.keys[key]) == (PARTITION, REPORTING_DATE):
        return exp.Anonymous(
            this=REPORTING_DATE, expressions=[exp.column(name, quoted=True) for name in _READ_BY_REPORTING_DATE]
        )
    return _over_one_event(f"the key '{key}' of the aggregate '{spec.name}'", spec.keys[key])


def _over_one_event(place: str, sql: str) -> exp.Expr:
    tree = _tree(place, sql)
    if tree.find(exp.AggFunc, exp.Window, exp.Query) is not None:
        raise ContractError(f"{place} must be an expression over one event: {sql}")
    return tree


def _tree(place: str, sql: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(sql, dialect=_DIALECT).transform(_with_versions)
    except SqlglotError:
        raise ContractError(f"{place} is not a SQL expression: {sql}") from None


def _parsed(aggregate: str, column: str, sql: str) -> exp.Expr:
    tree = _tree(_place(aggregate, column), sql)
    if tree.find(exp.AggFunc) is None or tree.find(exp.Query) is not None:
        raise ContractError(f"{_place(aggregate, column)} must be one aggregate of the game's events: {sql}")
    return tree


def _merging(aggregate: str, column: str, tree: exp.Expr) -> str:
    function = tree.this if isinstance(tree, exp.Filter) else tree
    way = _MAX_VERSION if _MAX_VERSION in function.meta else _MERGED_BY.get(type(function))
    if way is None or function.find(exp.Distinct) is not None:
        raise ContractError(
            f"{_place(aggregate, column)} can't be merged: {tree.sql(dialect=_DIALECT)}; use count, sum, min or max, "
            "or refresh the table by partition"
        )
    return way


def _place(aggregate: str, column: str) -> str:
    return f"the column '{column}' of the aggregate '{aggregate}'"
