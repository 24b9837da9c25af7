"""A declared aggregate as the statements that keep its table up: one makes partial results, one brings them together.

A column can be merged if its value over all rows follows from its values over parts of them: counts, sums and extremes
do, a median does not.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from gamelake.model.aggregates import AggregateSpec, Refresh
from gamelake.model.errors import ContractError

_DIALECT = "duckdb"
_MERGED_BY: Mapping[type[exp.Expr], str] = {exp.Count: "sum", exp.Sum: "sum", exp.Min: "min", exp.Max: "max"}
PARTITION = "event_date"
# No column of the contract can have this name.
UNFIT = "(unfit)"


@dataclass(frozen=True, slots=True)
class AggregateDefinition:
    """The SQL of one aggregate; `{source}` and the like are names of relations that the caller has registered.

    Attributes:
        spec: what the contract says.
        columns: its SQL by column, as the contract has it.
        merged_by: the function by which values of parts become that of the whole; empty if none does.
        reads: the columns that it reads.
        safe_columns: `columns`, with null for a value that a cast can't convert: a value must stop no table.
        unfit: a condition that is true for rows with such a value.
    """

    spec: AggregateSpec
    columns: Mapping[str, str]
    merged_by: Mapping[str, str]
    reads: frozenset[str]
    safe_columns: Mapping[str, str]
    unfit: str

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that a row is found by."""
        return self.spec.group_by

    @property
    def fingerprint(self) -> str:
        """Changes with anything that the table's rows depend on."""
        text = json.dumps([self.keys, list(self.columns.items()), self.spec.refresh.value])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def over(self, source: str) -> str:
        """The aggregate of a relation's rows."""
        return self._over(source, self.safe_columns)

    def counting(self, source: str) -> str:
        """The aggregate of a relation's rows, with their number of unfit values in the column `UNFIT`."""
        return self._over(source, {**self.safe_columns, UNFIT: f"count(*) FILTER (WHERE {self.unfit})"})

    def _over(self, source: str, columns: Mapping[str, str]) -> str:
        keys = ", ".join(map(quoted, self.keys))
        given = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())
        return f"SELECT {keys}, {given} FROM {source} GROUP BY {keys}"  # noqa: S608 # the contract's SQL

    def merging(self, parts: str) -> str:
        """The aggregate of everything, from a relation of aggregates of parts."""
        merged = (f"{way}({quoted(name)}) AS {quoted(name)}" for name, way in self.merged_by.items())
        keys = ", ".join(map(quoted, self.keys))
        return f"SELECT {keys}, {', '.join(merged)} FROM {parts} GROUP BY {keys}"  # noqa: S608 # see above


def quoted(name: str) -> str:
    """A column's name as SQL has it."""
    return f'"{name}"'


def define(spec: AggregateSpec) -> AggregateDefinition:
    """Read an aggregate's SQL.

    Raises:
        ContractError: a column is no aggregate, or can't be merged though the table is kept up by merging; names it.
    """
    if spec.refresh is Refresh.PARTITION and PARTITION not in spec.group_by:
        raise ContractError(f"the aggregate '{spec.name}' is refreshed by partition: it must be grouped by {PARTITION}")
    parsed = {name: _parsed(spec.name, name, sql) for name, sql in spec.columns.items()}
    merged_by = {}
    if spec.refresh is Refresh.MERGE:
        merged_by = {name: _merging(spec.name, name, tree) for name, tree in parsed.items()}
    reads = {column.name for tree in parsed.values() for column in tree.find_all(exp.Column)}
    columns = {name: tree.sql(dialect=_DIALECT) for name, tree in parsed.items()}
    safe_columns = {name: tree.transform(_safe).sql(dialect=_DIALECT) for name, tree in parsed.items()}
    casts = dict.fromkeys(_fails(cast) for tree in parsed.values() for cast in tree.find_all(exp.Cast) if _fails(cast))
    unfit = " OR ".join(casts) or "false"
    return AggregateDefinition(spec, columns, merged_by, frozenset(reads | set(spec.group_by)), safe_columns, unfit)


def _safe(node: exp.Expr) -> exp.Expr:
    return exp.TryCast(**node.args) if type(node) is exp.Cast else node


def _fails(cast: exp.Cast) -> str:
    """The condition that a cast fails; empty if it can't, or is of an aggregate and not of a row's value."""
    if type(cast) is not exp.Cast or cast.find(exp.AggFunc) is not None:
        return ""
    value = cast.this.transform(_safe).sql(dialect=_DIALECT)
    return f"({value} IS NOT NULL AND {_safe(cast).sql(dialect=_DIALECT)} IS NULL)"


def _parsed(aggregate: str, column: str, sql: str) -> exp.Expr:
    try:
        tree = sqlglot.parse_one(sql, dialect=_DIALECT)
    except SqlglotError:
        raise ContractError(f"{_place(aggregate, column)} is no SQL expression: {sql}") from None
    if tree.find(exp.AggFunc) is None or tree.find(exp.Query) is not None:
        raise ContractError(f"{_place(aggregate, column)} must be one aggregate of the game's events: {sql}")
    return tree


def _merging(aggregate: str, column: str, tree: exp.Expr) -> str:
    function = tree.this if isinstance(tree, exp.Filter) else tree
    way = _MERGED_BY.get(type(function))
    if way is None or function.find(exp.Distinct) is not None:
        raise ContractError(
            f"{_place(aggregate, column)} can't be merged: {tree.sql(dialect=_DIALECT)}; use count, sum, min or max, "
            "or refresh the table by partition"
        )
    return way


def _place(aggregate: str, column: str) -> str:
    return f"the column '{column}' of the aggregate '{aggregate}'"
