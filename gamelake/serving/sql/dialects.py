"""Translates Trino's SQL to the dialects of the engines that run without a cluster.

`translations` checks each part of a statement before sqlglot translates it. The tests of the questions and of the list
require the same answer from every engine.
"""

from collections.abc import Callable

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from gamelake.model.errors import QuestionError
from gamelake.serving.sql.column_types import ColumnTypes
from gamelake.serving.sql.query_engine import QueryEngine
from gamelake.serving.sql.translations import Translation

_TRINO = "trino"


class Translator:
    """Translates the statements of one question to an engine's dialect: first its views, then the question.

    Args:
        engine: the engine to translate for.
        name_of: a function from a table or view, `schema.table`, to the engine's name for it.
    """

    def __init__(self, engine: QueryEngine, name_of: Callable[[str], str]) -> None:
        self._engine = engine
        self._name_of = name_of
        self._types = ColumnTypes()

    def add_table(self, name: str, schema: pa.Schema) -> None:
        """Add a table that a later statement reads.

        Args:
            name: the table's name, `schema.table`.
            schema: all columns of the table, with their Arrow types.
        """
        self._types.add_table(name, schema)

    def view(self, name: str, sql: str) -> str:
        """Translate the statement of a view, and add the view for later statements to read.

        Args:
            name: the view's name, `schema.view`.
            sql: the view's statement in Trino's SQL.

        Returns:
            The statement in the engine's dialect.

        Raises:
            QuestionError: it is not a single query, or a part of it would have another result than in Trino.
        """
        said = self.question(sql)
        self._types.add_view(name, _parsed(sql))
        return said

    def question(self, sql: str) -> str:
        """Translate a statement from Trino's SQL to the engine's dialect.

        Raises:
            QuestionError: it is not a single query, or a part of it would have another result than in Trino.
        """
        tree = _parsed(sql)
        said = _translated(tree, Translation(self._engine, self._types.of(tree)))
        for table in tables_in(said):
            name = exp.to_identifier(self._name_of(f"{table.db}.{table.name}"), quoted=True)
            table.replace(exp.Table(this=name, alias=table.args.get("alias") or exp.TableAlias(this=table.this.copy())))
        return said.sql(dialect=self._engine.value, comments=False)


def _translated(node: exp.Expr, translation: Translation) -> exp.Expr:
    """Translate the children of a node, then the node. A replacement keeps its node's metadata, and so its type."""
    for child in list(node.iter_expressions()):
        key, index = str(child.arg_key), child.index
        new = _translated(child, translation)
        if new is not child:
            new.meta.update(child.meta)
            node.set(key, new, index=index)
    return translation(node)


def names_in(sql: str) -> frozenset[str]:
    """Return the tables and views that a statement reads, as `schema.table`.

    Raises:
        QuestionError: it is not a single query.
    """
    return frozenset(f"{table.db}.{table.name}" for table in tables_in(_parsed(sql)))


def columns_of(sql: str) -> list[str]:
    """Return the names of the columns in a statement's result, in order.

    Raises:
        QuestionError: it is not a single query.
    """
    return _parsed(sql).named_selects


def tables_in(tree: exp.Expr) -> list[exp.Table]:
    """List the tables that are named with a schema; those without are the statement's own WITH queries."""
    return [table for table in tree.find_all(exp.Table) if table.db]


def _parsed(sql: str) -> exp.Query:
    try:
        [tree] = [each for each in sqlglot.parse(sql, dialect=_TRINO) if each is not None]
    except SqlglotError as error:
        raise QuestionError(f"this is not valid Trino SQL: {_first_line(error)}") from None
    except ValueError:
        raise QuestionError("write exactly one statement") from None
    if not isinstance(tree, exp.Query):
        raise QuestionError(f"only queries are allowed here, not {tree.key.upper()}; begin with SELECT or WITH")
    return tree


def _first_line(error: SqlglotError) -> str:
    return str(error).splitlines()[0].rstrip(". ")
