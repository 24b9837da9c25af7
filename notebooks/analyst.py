"""SQL for the analyst's notebook: queries by Trino or DuckDB, results as pandas tables."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

import pandas as pd

from gamelake.contract.games import load_games
from gamelake.delta.listing import table_names
from gamelake.objects.store import Location, Store
from gamelake.serving.sql import duckdb as duckdb_answers
from gamelake.serving.sql.questions import load_questions
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import load_views
from gamelake.trino import TrinoAccess
from notebooks.settings import REPOSITORY, NotebookSettings

_QUESTIONS = REPOSITORY / "sql" / "questions"


class SqlEngine(Protocol):
    """An engine that runs queries in Trino's SQL dialect."""

    def ask(self, sql: str) -> pd.DataFrame:
        """Run a statement."""


@dataclass(frozen=True, slots=True)
class TrinoEngine:
    """Queries by the stack's Trino, or by any other on the same lakehouse."""

    place: TrinoAccess

    def __str__(self) -> str:
        """Address and user."""
        return f"Trino at {self.place.host}:{self.place.port}, as {self.place.user}"

    def ask(self, sql: str) -> pd.DataFrame:
        """See `SqlEngine`."""
        result = self.place.query(sql.strip().removesuffix(";"), "gamelake-notebooks")
        return pd.DataFrame(result.rows, columns=result.columns)


@dataclass(frozen=True, slots=True)
class DuckDbEngine:
    """Queries by DuckDB in this process."""

    lakehouse: Location

    def __str__(self) -> str:
        """Location of the tables."""
        return f"DuckDB over {self.lakehouse.uri}"

    def ask(self, sql: str) -> pd.DataFrame:
        """See `SqlEngine`."""
        games_file = REPOSITORY / "contracts" / "games.yaml"
        views = load_views(REPOSITORY / "sql" / "views", games_file)
        relations = Relations(table_names(Store(self.lakehouse)), views, load_games(games_file).games)
        return duckdb_answers.answer(sql, relations.read_by(sql), self.lakehouse).to_pandas()


@dataclass(frozen=True, slots=True)
class AnalystSession:
    """The interface of the analyst's notebook."""

    engine: SqlEngine

    @classmethod
    def open(cls) -> "AnalystSession":
        """A session by the settings: with Trino if its URL is set, else with DuckDB.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        settings = NotebookSettings.from_env()
        if settings.trino is not None:
            return cls(TrinoEngine(settings.trino))
        assert settings.lakehouse is not None  # noqa: S101 # one of the two is named
        return cls(DuckDbEngine(settings.lakehouse))

    def ask(self, sql: str) -> pd.DataFrame:
        """Run a statement; decimals are converted to floats, for charts."""
        answer = self.engine.ask(sql)
        decimal = [name for name in answer if answer[name].map(lambda value: isinstance(value, Decimal)).any()]
        return answer.astype(dict.fromkeys(decimal, float))

    def question(self, name: str) -> pd.DataFrame:
        """Run a worked question of `sql/questions`."""
        return self.ask((_QUESTIONS / f"{name}.sql").read_text(encoding="utf-8"))

    def questions(self) -> pd.DataFrame:
        """The worked questions for analysts."""
        found = [each for each in load_questions(_QUESTIONS).values() if "analyst" in each.asked_by]
        return pd.DataFrame({"question": [each.name for each in found], "it asks": [each.title for each in found]})
