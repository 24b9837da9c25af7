"""What a question reads: which tables, and which views in which order, of those that a lakehouse has."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gamelake.model.errors import QuestionError
from gamelake.model.games import GameSpec
from gamelake.serving.sql.dialects import names_in
from gamelake.serving.sql.views import View


@dataclass(frozen=True, slots=True)
class Reads:
    """The tables that a question reads in the end, and the views between, each after those that it reads itself."""

    tables: frozenset[str]
    views: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Relations:
    """The tables of a lakehouse as `schema.table`, and what views of them there are."""

    tables: frozenset[str]
    views: Sequence[View]
    games: Sequence[GameSpec]

    def read_by(self, sql: str) -> Reads:
        """What a statement reads.

        Raises:
            QuestionError: a table or view that it names is not there; says what would make it.
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
        """The same statement with its views written out and its tables under other names: Trino's SQL, word for word.

        Raises:
            QuestionError: see `read_by`.
        """
        reads = self.read_by(sql)
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
            remedy = "make gold brings the gold tables up to date"
        elif not self.tables:
            remedy = "this lakehouse has no tables; make demo fills one"
        else:
            there = ", ".join(sorted(each for each in self.tables if each.startswith(f"{schema}.")))
            remedy = f"in {schema} there are: {there or 'no tables'}"
        return f"there is no {kind} {schema}.{table}: {remedy}"
