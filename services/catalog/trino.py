"""Trino's catalog as the service changes it: schemas made, tables registered and unregistered."""

from trino.exceptions import TrinoQueryError, TrinoUserError

from gamelake.naming import Layer
from services.catalog.asking import asked, quoted
from services.catalog.errors import RegistrationRefusedError, TrinoSilentError
from services.catalog.settings import TrinoSettings
from services.catalog.tables import Table

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
