"""Registration of the lakehouse's tables in Trino, and the proof of which entries this service has made.

Trino's file metastore stores the id of the query that made an entry in the entry itself. The service stores the same
id in the lakehouse. Only if both agree was the entry made by this lakehouse's service and not replaced since.
"""

import time
from collections.abc import Callable
from datetime import timedelta

import msgspec

from gamelake.model.logs import event_logger
from gamelake.objects.store import Location, Store
from services.catalog.errors import RegistrationRefusedError, TableError
from services.catalog.tables import CatalogTable
from services.catalog.trino import TrinoCatalog

# Entries may have been removed from Trino by others, and refused tables may be valid by now.
_REFRESH_INTERVAL = timedelta(seconds=60)
_RUNS_UNTIL_GONE = 3
log = event_logger(__name__)


class Registration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A registered table: its location, and the id of the query that registered it."""

    location: str
    query_id: str


class _Parameters(msgspec.Struct, frozen=True):
    trino_query_id: str = ""


class _Entry(msgspec.Struct, frozen=True, rename="camel"):
    """The needed fields of an entry of Trino's file metastore."""

    external_location: str = ""
    parameters: _Parameters = _Parameters()


class Registrations:
    """The registrations of this service, stored in the lakehouse."""

    def __init__(self, lakehouse: Store, metastore: Store | None) -> None:
        self._lakehouse = lakehouse
        self._metastore = metastore

    def record(self, table: CatalogTable, registration: Registration) -> None:
        """Store a registration; it replaces an older one of the same name."""
        self._lakehouse.put(_note_path(table), msgspec.json.encode(registration))

    def is_ours(self, table: CatalogTable) -> bool:
        """Return True if Trino's entry was made by this service; False if that can't be proved."""
        if self._metastore is None:
            return False
        noted = self._lakehouse.get(_note_path(table))
        entry = self._metastore.get(f"{table.layer}/{table.name}/.trinoSchema")
        if noted is None or entry is None:
            return False
        try:
            ours = msgspec.json.decode(noted, type=Registration)
            found = msgspec.json.decode(entry, type=_Entry)
        except msgspec.DecodeError:
            return False
        return (found.parameters.trino_query_id, found.external_location) == (ours.query_id, ours.location)


def _note_path(table: CatalogTable) -> str:
    return f"_gamelake/catalog/registrations/{table.layer}/{table.name}.json"


class Registrar:
    """Registers new tables in Trino, and unregisters deleted tables that it has registered."""

    def __init__(
        self,
        location: Location,
        trino: TrinoCatalog,
        registrations: Registrations,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._location = location
        self._trino = trino
        self._registrations = registrations
        self._clock = clock
        self._refreshed_at = float("-inf")
        self._in_trino: set[CatalogTable] = set()
        self._refused: dict[CatalogTable, TableError] = {}
        self._runs_missing: dict[CatalogTable, int] = {}
        # Entries of others, and those that Trino refuses to unregister until the next refresh.
        self._foreign: set[CatalogTable] = set()
        self._kept: set[CatalogTable] = set()

    def synchronize(self, found: frozenset[CatalogTable]) -> tuple[int, list[TableError]]:
        """Register the found tables in Trino; a run without new tables sends no query.

        Returns:
            The number of registered tables, and the errors of refused ones.

        Raises:
            TrinoUnavailableError: Trino is not available; the next run retries.
        """
        if self._clock() - self._refreshed_at >= _REFRESH_INTERVAL.total_seconds():
            self._in_trino = set(self._trino.tables())
            self._refused.clear()
            self._kept.clear()
            self._refreshed_at = self._clock()
        self._register(sorted(found - self._in_trino - self._refused.keys()))
        self._unregister_gone(found)
        return len(found & self._in_trino), [error for table, error in self._refused.items() if table in found]

    def reload_log(self, table: CatalogTable) -> None:
        """Make Trino reload the log of a table that was replaced by another one, so that it does not mix their logs.

        Raises:
            RegistrationRefusedError: Trino refuses.
            TrinoUnavailableError: Trino is not available.
        """
        if table in self._in_trino:
            self._trino.flush_log(table)

    def _register(self, tables: list[CatalogTable]) -> None:
        for layer in sorted({table.layer for table in tables}):
            self._trino.create_schema(layer)
        for table in tables:
            location = self._location.child(str(table))
            try:
                query_id = self._trino.register(table, location)
            except RegistrationRefusedError as error:
                self._refused[table] = error
                log.warning("registration_refused", table=table, error=error)
                continue
            self._in_trino.add(table)
            if query_id is not None:
                # A crash between the two lines leaves an entry without a record, which is never unregistered.
                self._registrations.record(table, Registration(location, query_id))
                log.info("table_registered", table=table)

    def _unregister_gone(self, found: frozenset[CatalogTable]) -> None:
        missing = self._in_trino - found
        self._runs_missing = {table: self._runs_missing.get(table, 0) + 1 for table in missing}
        self._foreign &= missing
        gone = {table for table, runs in self._runs_missing.items() if runs >= _RUNS_UNTIL_GONE}
        # Whose an entry is, is asked once; a run that fails between two tables leaves the rest to the next run.
        for table in sorted(gone - self._foreign - self._kept):
            if not self._registrations.is_ours(table):
                self._foreign.add(table)
                log.info(
                    "foreign_table_kept",
                    table=table,
                    reason="Trino has it and the lakehouse does not, but this service did not register it",
                )
                continue
            try:
                self._trino.unregister(table)
            except RegistrationRefusedError as error:
                self._kept.add(table)
                log.warning("unregistration_refused", table=table, error=error)
                continue
            self._in_trino.discard(table)
            log.info("table_unregistered", table=table, reason="it was deleted")
