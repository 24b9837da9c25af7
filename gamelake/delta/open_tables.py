"""Tables that stay open: each is opened once, then updated with the commits since.

Opening a table takes a request for each commit since its last log checkpoint, often 50 and sometimes more. Updating an
open table takes three requests, and one for each new commit.
"""

from typing import NamedTuple

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from gamelake.delta.log.codec import entry_path
from gamelake.delta.tables import open_table
from gamelake.objects.store import Store


class _Opened(NamedTuple):
    """An open table.

    Attributes:
        handle: delta-rs's table.
        version: the version that it is open at.
        entry: that version's log entry.
    """

    handle: DeltaTable
    version: int
    entry: bytes


class OpenTables:
    """Tables of a lakehouse that one thread reads repeatedly; those that were used last stay open.

    A second call for the same table may update the handle that the first one returned.

    Args:
        store: the lakehouse.
        most: the number of tables that stay open, with the list of their live files in memory.

    Attributes:
        store: the lakehouse.
    """

    def __init__(self, store: Store, most: int) -> None:
        self.store = store
        self._most = most
        self._opened: dict[str, _Opened] = {}

    def newest(self, table: str) -> DeltaTable:
        """Return the table at its newest version.

        Raises:
            TableNotFoundError: there is no table.
            TransientError: its log grew at every attempt to list it.
        """
        opened = self._opened.pop(table, None)
        if opened is not None:
            opened = self._followed(table, opened)
        if opened is None:
            handle = open_table(self.store.location, table)
            opened = self._remembered(table, handle)
            if opened is None:
                # Log cleanup has deleted the entry, so nothing would show that the table has been created again.
                return handle
        self._opened[table] = opened
        if len(self._opened) > self._most:
            del self._opened[next(iter(self._opened))]
        return opened.handle

    def _followed(self, table: str, opened: _Opened) -> _Opened | None:
        """Update an open table with the commits since; return None if it must be opened again.

        That is the case if the table was dropped and created again, or if its log can't be followed.
        """
        if self.store.get(entry_path(table, opened.version)) != opened.entry:
            return None
        try:
            opened.handle.update_incremental()
        except DeltaError:
            return None
        return opened if opened.handle.version() == opened.version else self._remembered(table, opened.handle)

    def _remembered(self, table: str, handle: DeltaTable) -> _Opened | None:
        entry = self.store.get(entry_path(table, handle.version()))
        return None if entry is None else _Opened(handle, handle.version(), entry)
