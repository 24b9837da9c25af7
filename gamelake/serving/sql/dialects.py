"""SQL as Trino has it, in the words of the engines that the embedded mode has.

sqlglot translates; what it leaves different is corrected here. The tests of the questions hold the engines to
one answer.
"""

from collections.abc import Callable
from enum import StrEnum

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from gamelake.model.errors import QuestionError

_TRINO = "trino"
# DuckDB's date_diff counts the boundaries that were crossed, Trino's the whole units that went by.
_WHOLE_UNITS = frozenset({"MILLISECOND", "SECOND", "MINUTE", "HOUR"})


class QueryEngine(StrEnum):
    """The engine that runs a query."""

    TRINO = "trino"
    SPARK = "spark"
    DUCKDB = "duckdb"


def translated(sql: str, engine: QueryEngine, name_of: Callable[[str], str]) -> str:
    """A statement of Trino's in an engine's words, its tables `schema.table` under the names that `name_of` gives them.

    Raises:
        QuestionError: it is no statement that reads, or not one.
    """
    tree: exp.Expr = _parsed(sql)
    for table in tables_in(tree):
        name = exp.to_identifier(name_of(f"{table.db}.{table.name}"), quoted=True)
        table.replace(exp.Table(this=name, alias=table.args.get("alias") or exp.TableAlias(this=table.this.copy())))
    if engine is QueryEngine.DUCKDB:
        tree = tree.transform(_for_duckdb)
    return tree.sql(dialect=engine.value, comments=False)


def names_in(sql: str) -> frozenset[str]:
    """The tables and views that a statement reads, as `schema.table`.

    Raises:
        QuestionError: it is no statement that reads, or not one.
    """
    return frozenset(f"{table.db}.{table.name}" for table in tables_in(_parsed(sql)))


def columns_of(sql: str) -> list[str]:
    """The columns that a statement gives.

    Raises:
        QuestionError: it is no statement that reads, or not one.
    """
    return _parsed(sql).named_selects


def tables_in(tree: exp.Expr) -> list[exp.Table]:
    """The tables that have a schema; those without are the statement's own."""
    return [table for table in tree.find_all(exp.Table) if table.db]


def _parsed(sql: str) -> exp.Query:
    try:
        [tree] = [each for each in sqlglot.parse(sql, dialect=_TRINO) if each is not None]
    except SqlglotError as error:
        raise QuestionError(f"this is no SQL of Trino's: {_first_line(error)}") from None
    except ValueError:
        raise QuestionError("one statement can be asked at a time") from None
    if not isinstance(tree, exp.Query):
        raise QuestionError(f"only questions can be asked here, not {tree.key.upper()}")
    return tree


def _first_line(error: SqlglotError) -> str:
    return str(error).splitlines()[0].rstrip(". ")


def _for_duckdb(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.CurrentTimestamp):
        # The tables' moments have no zone here, and are in UTC; so is this one.
        return sqlglot.parse_one("make_timestamp(epoch_us(current_timestamp))", dialect="duckdb")
    if isinstance(node, exp.DateDiff) and node.text("unit").upper() in _WHOLE_UNITS:
        unit = exp.Literal.string(node.text("unit").lower())
        return exp.Anonymous(this="date_sub", expressions=[unit, node.expression, node.this])
    return node
