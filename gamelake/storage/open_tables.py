"""Tables that stay open: each is read once, then brought to its newest version by what was committed since.

Opening a table takes a request for each commit since its last log checkpoint, up to 50 of them and more; following an
open one takes three, and one for each new commit.
"""

from typing import NamedTuple

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from gamelake.storage.delta_log import entry_path
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table


class _Opened(NamedTuple):
    """A table, its version, and that version's log entry."""

    handle: DeltaTable
    version: int
    entry: bytes


class OpenTables:
    """Tables of a lakehouse that one thread reads again and again; those that were used last stay open.

    A table that was returned changes when it is asked for again.

    Args:
        store: the lakehouse.
        most: how many stay open, with the list of their live files in memory.
    """

    def __init__(self, store: Store, most: int) -> None:
        self.store = store
        self._most = most
        self._opened: dict[str, _Opened] = {}

    def newest(self, table: str) -> DeltaTable:
        """The table at its newest version.

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
                # Cleaned up: nothing would show that the table was made anew meanwhile.
                return handle
        self._opened[table] = opened
        if len(self._opened) > self._most:
            del self._opened[next(iter(self._opened))]
        return opened.handle

    def _followed(self, table: str, opened: _Opened) -> _Opened | None:
        """The table with the commits since; None if it has to be opened again, such as one that was made anew."""
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
