"""Trino's catalog: creates schemas, registers tables, creates and drops views; one statement per connection."""

from collections.abc import Mapping

from requests.exceptions import RequestException
from trino.exceptions import Error, HttpError, TrinoQueryError

from gamelake.model.naming import Layer
from gamelake.serving.sql.views import View
from services.catalog.errors import RegistrationRefusedError, TrinoUnavailableError, ViewRefusedError
from services.catalog.settings import TrinoSettings
from services.catalog.tables import CatalogTable

_ANSWER_SECONDS = 30.0
# Trino's errors for a name that another service has registered in the meantime.
_THERE_ALREADY = frozenset({"ALREADY_EXISTS", "TABLE_ALREADY_EXISTS", "SCHEMA_ALREADY_EXISTS"})


def execute(settings: TrinoSettings, sql: str) -> tuple[list[list[str]], str]:
    """Run a statement; returns the rows and the query's id.

    Raises:
        TrinoQueryError: Trino rejects the statement.
        TrinoUnavailableError: Trino is not available, or has an internal error.
    """
    try:
        # The next run retries.
        result = settings.access.query(
            sql, "gamelake-catalog", catalog=settings.catalog, seconds=_ANSWER_SECONDS, attempts=1
        )
    except TrinoQueryError as error:
        if error.error_type in {"INTERNAL_ERROR", "INSUFFICIENT_RESOURCES"}:
            raise TrinoUnavailableError(f"Trino has an internal error: {error.message}") from error
        raise
    except (Error, HttpError, RequestException) as error:
        raise TrinoUnavailableError(f"Trino is not available: {error}") from error
    return result.rows, result.query_id


def sql_literal(text: str) -> str:
    """Quote a text as a literal in SQL."""
    return "'" + text.replace("'", "''") + "'"


class TrinoCatalog:
    """The Delta catalog in Trino."""

    def __init__(self, settings: TrinoSettings) -> None:
        self._settings = settings

    def tables(self) -> frozenset[CatalogTable]:
        """Return the tables registered in Trino in the lakehouse's layers.

        Raises:
            TrinoUnavailableError: Trino is not available, or refuses the query.
        """
        layers = ", ".join(f"'{layer}'" for layer in Layer)
        rows, _ = self._select(
            "SELECT table_schema, table_name FROM information_schema.tables "  # noqa: S608 # names of our own
            f"WHERE table_type = 'BASE TABLE' AND table_schema IN ({layers})"
        )
        return frozenset(CatalogTable(Layer(schema), name) for schema, name in rows)

    def create_schema(self, layer: Layer) -> None:
        """Create the schema of a layer if it does not exist.

        Raises:
            TrinoUnavailableError: Trino is not available, or refuses.
        """
        try:
            self._run(f"CREATE SCHEMA IF NOT EXISTS {layer}")
        except TrinoQueryError as error:
            if error.error_name not in _THERE_ALREADY:
                raise TrinoUnavailableError(f"Trino refuses to create the schema {layer}: {error.message}") from error

    def register(self, table: CatalogTable, location: str) -> str | None:
        """Register a table; returns the id of the query, None if the name is registered already.

        Raises:
            RegistrationRefusedError: Trino refuses the table.
            TrinoUnavailableError: Trino is not available.
        """
        try:
            return self._run(f"CALL system.register_table('{table.layer}', '{table.name}', {sql_literal(location)})")
        except TrinoQueryError as error:
            if error.error_name in _THERE_ALREADY:
                return None
            raise RegistrationRefusedError(f"Trino refuses to register {table}: {error.message}") from error

    def unregister(self, table: CatalogTable) -> None:
        """Unregister a table; its files stay.

        Raises:
            RegistrationRefusedError: Trino refuses.
            TrinoUnavailableError: Trino is not available.
        """
        try:
            self._run(f"CALL system.unregister_table('{table.layer}', '{table.name}')")
        except TrinoQueryError as error:
            raise RegistrationRefusedError(f"Trino refuses to unregister {table}: {error.message}") from error

    def flush_log(self, table: CatalogTable) -> None:
        """Make Trino reload a table's log.

        Raises:
            RegistrationRefusedError: Trino refuses.
            TrinoUnavailableError: Trino is not available.
        """
        try:
            self._run(f"CALL system.flush_metadata_cache(schema_name => '{table.layer}', table_name => '{table.name}')")
        except TrinoQueryError as error:
            raise RegistrationRefusedError(f"Trino refuses to reload {table}: {error.message}") from error

    def _select(self, sql: str) -> tuple[list[list[str]], str]:
        try:
            return execute(self._settings, sql)
        except TrinoQueryError as error:
            raise TrinoUnavailableError(f"Trino refuses to list its tables: {error.message}") from error

    def _run(self, sql: str) -> str:
        return execute(self._settings, sql)[1]


class TrinoViews:
    """The views in the lakehouse's layers, by their names `schema.view`."""

    def __init__(self, settings: TrinoSettings) -> None:
        self._settings = settings

    def definitions(self) -> Mapping[str, str]:
        """Return the definition of each view, as Trino stores it.

        Raises:
            TrinoUnavailableError: Trino is not available, or refuses the query.
        """
        layers = ", ".join(sql_literal(layer) for layer in Layer)
        sql = (
            "SELECT table_schema || '.' || table_name, view_definition "  # noqa: S608 # names of our own
            f"FROM information_schema.views WHERE table_schema IN ({layers})"
        )
        try:
            rows, _ = execute(self._settings, sql)
        except TrinoQueryError as error:
            raise TrinoUnavailableError(f"Trino refuses to list its views: {error.message}") from error
        return {str(name): str(definition) for name, definition in rows}

    def make(self, view: View, statement: str) -> None:
        """Create or replace a view.

        Raises:
            ViewRefusedError: Trino refuses it.
            TrinoUnavailableError: Trino is not available.
        """
        # SECURITY INVOKER: users need rights on the tables that the view reads.
        self._run(
            view.name,
            f"CREATE OR REPLACE VIEW {view.name} COMMENT {sql_literal(view.comment)} SECURITY INVOKER AS {statement}",
        )
        for column, meaning in view.columns:
            self._run(view.name, f"COMMENT ON COLUMN {view.name}.{column} IS {sql_literal(meaning)}")

    def drop(self, name: str) -> None:
        """Drop a view, if it exists.

        Raises:
            ViewRefusedError: Trino refuses.
            TrinoUnavailableError: Trino is not available.
        """
        self._run(name, f"DROP VIEW IF EXISTS {name}")

    def _run(self, view: str, sql: str) -> None:
        try:
            execute(self._settings, sql)
        except TrinoQueryError as error:
            raise ViewRefusedError(f"Trino refuses the view {view}: {error.message}") from error
