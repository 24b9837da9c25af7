"""Resolves the tables and views that a question reads, with the views in order of dependency."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gamelake.contract.games import GameSpec
from gamelake.model.choices import allowed
from gamelake.model.errors import QuestionError
from gamelake.serving.sql.dialects import names_in
from gamelake.serving.sql.views import View


@dataclass(frozen=True, slots=True)
class Reads:
    """The tables and views that a question reads, directly or through other views.

    Attributes:
        tables: the tables, as `schema.table`.
        views: each view's name and statement, after those of the views that it reads.
    """

    tables: frozenset[str]
    views: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Relations:
    """The tables and views of a lakehouse.

    Attributes:
        tables: the tables that exist, as `schema.table`.
        views: all views of the project, each after those that it reads.
        games: the games of the contract, for views that are written for one game.
    """

    tables: frozenset[str]
    views: Sequence[View]
    games: Sequence[GameSpec]

    def read_by(self, sql: str) -> Reads:
        """Resolve the tables and views that a statement reads.

        Raises:
            QuestionError: a table or view that it names is missing; names the command that creates it, or the existing
                tables.
        """
        statements: dict[str, str] = {}
        for view in self.views:
            statement = view.over(self.games, self.tables | statements.keys())
            if statement is not None:
                statements[view.name] = statement
        wanted, views = set(names_in(sql)), []
        for name in reversed(statements):
            if name in wanted:
                wanted = wanted - {name} | names_in(statements[name])
                views.append((name, statements[name]))
        if missing := sorted(wanted - self.tables):
            raise QuestionError(self._absent(missing[0]))
        return Reads(frozenset(wanted), tuple(reversed(views)))

    def written_out(self, sql: str, names: Mapping[str, str]) -> str:
        """Return the statement with its views replaced by their SQL and its tables by other names.

        Everything else is the statement's own text, in Trino's SQL.

        Args:
            sql: the statement.
            names: the new name of each table, by `schema.table`.

        Raises:
            QuestionError: a table or view that it names is missing.
        """
        reads = self.read_by(sql)
        # A view named in a comment would be replaced by several lines, and only the first would stay a comment.
        sql = "\n".join(line for line in sql.splitlines() if not line.lstrip().startswith("--"))
        for view, statement in reversed(reads.views):
            sql = f"({statement})".join(re.split(rf"\b{re.escape(view)}\b", sql))
        for table in reads.tables:
            sql = names[table].join(re.split(rf"\b{re.escape(table)}\b", sql))
        return sql

    def _absent(self, name: str) -> str:
        schema, _, table = name.partition(".")
        known = any(view.name == name for view in self.views)
        kind = "view" if known else "table"
        if schema == "gold":
            remedy = "a running platform makes it from its first events; for the tables of make demo run make gold"
        elif not self.tables:
            remedy = "this lakehouse has no tables yet; make demo fills one, as do make dev and make up"
        else:
            there = sorted(each for each in self.tables if each.startswith(f"{schema}."))
            remedy = f"{schema} has: {allowed(there, name) or 'no tables'}"
        return f"there is no {kind} {schema}.{table}: {remedy}"
