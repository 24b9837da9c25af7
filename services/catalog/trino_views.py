"""Trino's views as the service changes them: made or replaced, described, dropped."""

from collections.abc import Mapping

from trino.exceptions import TrinoQueryError

from gamelake.naming import Layer
from gamelake.sql.views import View
from services.catalog.asking import asked, quoted
from services.catalog.errors import TrinoSilentError, ViewRefusedError
from services.catalog.settings import TrinoSettings


class TrinoViews:
    """The views of the lakehouse's layers, by their names `schema.view`."""

    def __init__(self, settings: TrinoSettings) -> None:
        self._settings = settings

    def definitions(self) -> Mapping[str, str]:
        """What each view is, in Trino's own words.

        Raises:
            TrinoSilentError: Trino gave no answer, or not this one.
        """
        layers = ", ".join(quoted(layer) for layer in Layer)
        sql = (
            "SELECT table_schema || '.' || table_name, view_definition "  # noqa: S608 # names of our own
            f"FROM information_schema.views WHERE table_schema IN ({layers})"
        )
        try:
            rows, _ = asked(self._settings, sql)
        except TrinoQueryError as error:
            raise TrinoSilentError(f"Trino does not say which views it has: {error.message}") from error
        return {str(name): str(definition) for name, definition in rows}

    def make(self, view: View, statement: str) -> None:
        """Make a view, or put it in the place of the one that has its name.

        Raises:
            ViewRefusedError: Trino does not take it.
            TrinoSilentError: Trino gave no answer.
        """
        # Whoever asks needs the rights on what the view reads: it opens nothing.
        self._run(
            view.name,
            f"CREATE OR REPLACE VIEW {view.name} COMMENT {quoted(view.comment)} SECURITY INVOKER AS {statement}",
        )
        for column, meaning in view.columns:
            self._run(view.name, f"COMMENT ON COLUMN {view.name}.{column} IS {quoted(meaning)}")

    def drop(self, name: str) -> None:
        """Drop a view; one that is gone already is as good.

        Raises:
            ViewRefusedError: Trino does not let it go.
            TrinoSilentError: Trino gave no answer.
        """
        self._run(name, f"DROP VIEW IF EXISTS {name}")

    def _run(self, view: str, sql: str) -> None:
        try:
            asked(self._settings, sql)
        except TrinoQueryError as error:
            raise ViewRefusedError(f"Trino refuses the view {view}: {error.message}") from error
