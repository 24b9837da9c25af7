"""The proof of who named a table to Trino: the id of the query that did it, in the lakehouse and in Trino's metastore.

Trino's file metastore writes the id of the query that made an entry into the entry itself. The service writes the same
id beside the tables. Only where both agree has this lakehouse's service made the entry, and nobody replaced it since.
"""

import logging
import time
from collections.abc import Callable
from datetime import timedelta

import msgspec

from gamelake.storage.store import Location, Store
from services.catalog.errors import RegistrationRefusedError, TableError
from services.catalog.tables import Table
from services.catalog.trino import TrinoCatalog


class Registration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table was named to Trino: under which location, by which query."""

    location: str
    query_id: str


class _Parameters(msgspec.Struct, frozen=True):
    trino_query_id: str = ""


class _Entry(msgspec.Struct, frozen=True, rename="camel"):
    """What matters of an entry of Trino's file metastore."""

    external_location: str = ""
    parameters: _Parameters = _Parameters()


class Registrations:
    """What this lakehouse's service has registered, in the lakehouse itself."""

    def __init__(self, lakehouse: Store, metastore: Store | None) -> None:
        self._lakehouse = lakehouse
        self._metastore = metastore

    def note(self, table: Table, registration: Registration) -> None:
        """Keep a registration; it takes the place of an older one of the same name."""
        self._lakehouse.put(_note_path(table), msgspec.json.encode(registration))

    def is_ours(self, table: Table) -> bool:
        """Whether the entry that Trino has was made by this service; False if that can't be shown."""
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


def _note_path(table: Table) -> str:
    return f"_gamelake/catalog/registrations/{table.layer}/{table.name}.json"


# Somebody may have taken a name away; what was refused may be in order by now.
_ASK_AGAIN = timedelta(seconds=60)
_ROUNDS_UNTIL_GONE = 3

log = logging.getLogger(__name__)


class Registrar:
    """Registers tables that Trino does not know, and unregisters those that it registered and that are gone."""

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
        self._asked_at = float("-inf")
        self._in_trino: set[Table] = set()
        self._refused: dict[Table, TableError] = {}
        self._rounds_missing: dict[Table, int] = {}

    def bring_in_line(self, found: frozenset[Table]) -> tuple[int, list[TableError]]:
        """Make Trino know the tables that were found; a round in which nothing is new asks Trino nothing.

        Returns:
            How many of them Trino knows, and what it refuses.

        Raises:
            TrinoSilentError: Trino gave no answer; what is missing is tried in the next round.
        """
        if self._clock() - self._asked_at >= _ASK_AGAIN.total_seconds():
            self._in_trino = set(self._trino.tables())
            self._refused.clear()
            self._asked_at = self._clock()
        self._register(sorted(found - self._in_trino - self._refused.keys()))
        self._unregister_gone(found)
        return len(found & self._in_trino), [error for table, error in self._refused.items() if table in found]

    def read_anew(self, table: Table) -> None:
        """Another table stands at a table's place: Trino must not mix their logs.

        Raises:
            RegistrationRefusedError: Trino refuses.
            TrinoSilentError: Trino gave no answer.
        """
        if table in self._in_trino:
            self._trino.forget_log(table)

    def _register(self, tables: list[Table]) -> None:
        for layer in sorted({table.layer for table in tables}):
            self._trino.create_schema(layer)
        for table in tables:
            location = self._location.child(str(table))
            try:
                query_id = self._trino.register(table, location)
            except RegistrationRefusedError as error:
                self._refused[table] = error
                log.warning("%s", error)
                continue
            self._in_trino.add(table)
            if query_id is not None:
                # Ending between the two lines leaves an entry that nobody claims, which is then never taken away.
                self._registrations.note(table, Registration(location, query_id))
                log.info("registered %s", table)

    def _unregister_gone(self, found: frozenset[Table]) -> None:
        missing = self._in_trino - found
        self._rounds_missing = {table: self._rounds_missing.get(table, 0) + 1 for table in missing}
        # Asked once, in the round in which a table counts as gone: others' entries stay in Trino for ever.
        for table in sorted(table for table, rounds in self._rounds_missing.items() if rounds == _ROUNDS_UNTIL_GONE):
            if not self._registrations.is_ours(table):
                log.info(
                    "%s is in Trino and not in the lakehouse; it stays, for this service did not register it", table
                )
                continue
            try:
                self._trino.unregister(table)
            except RegistrationRefusedError as error:
                log.warning("%s", error)
                continue
            self._in_trino.discard(table)
            log.info("unregistered %s, which is gone", table)
