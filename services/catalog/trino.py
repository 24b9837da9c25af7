"""Trino's catalog as the service changes it: schemas made, tables registered and unregistered."""

from collections.abc import Mapping

from requests.exceptions import RequestException
from trino.dbapi import connect
from trino.exceptions import Error, HttpError, TrinoQueryError, TrinoUserError

from gamelake.model.naming import Layer
from gamelake.serving.sql.views import View
from services.catalog.errors import RegistrationRefusedError, TrinoSilentError, ViewRefusedError
from services.catalog.settings import TrinoSettings
from services.catalog.tables import Table

_ANSWER_SECONDS = 30.0


def asked(settings: TrinoSettings, sql: str) -> tuple[list[list[str]], str]:
    """Rows and the query's id; what Trino says against the query itself is the caller's to judge.

    Raises:
        TrinoQueryError: Trino says no.
        TrinoSilentError: Trino gave no answer, or is not well.
    """
    connection = connect(  # type: ignore[no-untyped-call] # it takes whatever Connection takes
        host=settings.host,
        port=settings.port,
        http_scheme=settings.scheme,
        user=settings.user,
        catalog=settings.catalog,
        source="gamelake-catalog",
        request_timeout=_ANSWER_SECONDS,
        # The rounds are the retries.
        max_attempts=1,
    )
    try:
        cursor = connection.cursor()
        cursor.execute(sql)
        return cursor.fetchall(), str(cursor.query_id)
    except TrinoQueryError as error:
        if error.error_type in {"INTERNAL_ERROR", "INSUFFICIENT_RESOURCES"}:
            raise TrinoSilentError(f"Trino is not well: {error.message}") from error
        raise
    except (Error, HttpError, RequestException) as error:
        raise TrinoSilentError(f"Trino does not answer: {error}") from error
    finally:
        connection.close()


def quoted(text: str) -> str:
    """A text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


# What Trino says of a name that another service has made in the meantime.
_THERE_ALREADY = frozenset({"ALREADY_EXISTS", "TABLE_ALREADY_EXISTS", "SCHEMA_ALREADY_EXISTS"})


class TrinoCatalog:
    """The Delta catalog of a Trino."""

    def __init__(self, settings: TrinoSettings) -> None:
        self._settings = settings

    def tables(self) -> frozenset[Table]:
        """The tables that Trino knows in the lakehouse's layers.

        Raises:
            TrinoSilentError: Trino gave no answer, or not this one.
        """
        layers = ", ".join(f"'{layer}'" for layer in Layer)
        rows, _ = self._asked(
            "SELECT table_schema, table_name FROM information_schema.tables "  # noqa: S608 # names of our own
            f"WHERE table_type = 'BASE TABLE' AND table_schema IN ({layers})"
        )
        return frozenset(Table(Layer(schema), name) for schema, name in rows)

    def create_schema(self, layer: Layer) -> None:
        """Make a layer's schema unless it is there.

        Raises:
            TrinoSilentError: Trino gave no answer, or refuses.
        """
        try:
            self._run(f"CREATE SCHEMA IF NOT EXISTS {layer}")
        except TrinoUserError as error:
            if error.error_name not in _THERE_ALREADY:
                raise TrinoSilentError(f"Trino does not make the schema {layer}: {error.message}") from error

    def register(self, table: Table, location: str) -> str | None:
        """Give a table its name; gives the id of the query that did it, None if the name was taken.

        Raises:
            RegistrationRefusedError: Trino does not take the table.
            TrinoSilentError: Trino gave no answer.
        """
        try:
            return self._run(f"CALL system.register_table('{table.layer}', '{table.name}', {quoted(location)})")
        except TrinoQueryError as error:
            if error.error_name in _THERE_ALREADY:
                return None
            raise RegistrationRefusedError(f"Trino does not take {table}: {error.message}") from error

    def unregister(self, table: Table) -> None:
        """Take a table's name away; its files stay.

        Raises:
            RegistrationRefusedError: Trino does not let it go.
            TrinoSilentError: Trino gave no answer.
        """
        try:
            self._run(f"CALL system.unregister_table('{table.layer}', '{table.name}')")
        except TrinoQueryError as error:
            raise RegistrationRefusedError(f"Trino does not let {table} go: {error.message}") from error

    def forget_log(self, table: Table) -> None:
        """Make Trino read a table's log anew.

        Raises:
            RegistrationRefusedError: Trino refuses.
            TrinoSilentError: Trino gave no answer.
        """
        try:
            self._run(f"CALL system.flush_metadata_cache(schema_name => '{table.layer}', table_name => '{table.name}')")
        except TrinoQueryError as error:
            raise RegistrationRefusedError(f"Trino does not read {table} anew: {error.message}") from error

    def _asked(self, sql: str) -> tuple[list[list[str]], str]:
        try:
            return asked(self._settings, sql)
        except TrinoQueryError as error:
            raise TrinoSilentError(f"Trino does not say which tables it knows: {error.message}") from error

    def _run(self, sql: str) -> str:
        return asked(self._settings, sql)[1]


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
