"""The proof of who named a table to Trino: the id of the query that did it, in the lakehouse and in Trino's metastore.

Trino's file metastore writes the id of the query that made an entry into the entry itself. The service writes the same
id beside the tables. Only where both agree has this lakehouse's service made the entry, and nobody replaced it since.
"""

import msgspec

from gamelake.lake.store import Store
from services.catalog.tables import Table


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
