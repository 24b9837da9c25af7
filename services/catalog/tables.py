"""Finds the tables of a lakehouse, by cheap listings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gamelake.delta.listing import has_log
from gamelake.model.logs import event_logger
from gamelake.model.naming import Layer
from gamelake.objects.store import Store

# Trino converts names to lower case, and names are used in SQL.
_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9_]*")

log = event_logger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class CatalogTable:
    """A table by its layer and name; its text is the path in the lakehouse."""

    layer: Layer
    name: str

    def __str__(self) -> str:
        """The path in the lakehouse."""
        return f"{self.layer}/{self.name}"


class TableFinder:
    """Finds the folders that are tables; a folder that is known to be one is not checked again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: set[CatalogTable] = set()
        self._passed_over: set[str] = set()

    def find(self) -> frozenset[CatalogTable]:
        """Find all present tables, with one listing for each layer and one for each folder that is not yet a table."""
        tables = (table for layer in Layer for table in self._folders(layer))
        self._known = {table for table in tables if table in self._known or has_log(self._store, str(table))}
        return frozenset(self._known)

    def _folders(self, layer: Layer) -> Iterator[CatalogTable]:
        for path in self._store.folders(layer):
            name = path.rstrip("/").rsplit("/", 1)[-1]
            if _PLAIN_NAME.fullmatch(name):
                yield CatalogTable(layer, name)
            elif path not in self._passed_over:
                self._passed_over.add(path)
                log.warning("table_ignored", path=path, reason="a table's name consists of a-z, 0-9 and _")
