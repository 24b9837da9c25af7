"""Sets the rows of one game back in a table of all games; those of the others stay as they are.

The files that have come since lose the game's rows, and of those that have gone since the game's rows come back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.errors import TransientError
from gamelake.lake.actions import ENGINE, add_action, now_milliseconds, remove_action
from gamelake.lake.appends import schema_of
from gamelake.lake.datafile import DataFile
from gamelake.lake.datasets import dataset
from gamelake.lake.file_entries import FileEntry, live_files
from gamelake.lake.leases import Lease
from gamelake.lake.log import REBUILT_NOTE
from gamelake.lake.rewrites import commit_behind, discard, write_beside
from gamelake.lake.store import Store
from gamelake.lake.tables import open_table
from gamelake.maintenance.restoring import Restored, TableRestore, entry_of

_GAME = "game_name"


@dataclass(frozen=True, slots=True)
class _Part:
    """A file, and of its rows those of the game and those of the others."""

    file: FileEntry
    ours: pa.Table
    others: pa.Table


@dataclass(frozen=True, slots=True)
class GameRestore:
    """A table of all games, the version that one game is to be like, and the names by which events are of that game."""

    whole: TableRestore
    names: frozenset[str]

    def outlook(self) -> Restored:
        """What would change.

        Raises:
            RestoreError: files that the version needs are gone.
        """
        return self._outlook(*self._parts())

    def commit(self, lease: Lease) -> Restored:
        """Change it.

        Raises:
            RestoreError: files that the version needs are gone.
            TransientError: another process replaced files meanwhile.
        """
        back, out = self._parts()
        outlook = self._outlook(back, out)
        if not back and not out:
            return outlook
        store, table = self.whole.store, self.whole.history.table
        written = [
            *(write_beside(store, table, part.file, part.others) for part in out if len(part.others)),
            *(write_beside(store, table, part.file, part.ours) for part in back),
        ]
        version = commit_behind(store, table, outlook.from_version, self._actions(out, written), lease)
        if version is None:
            discard(store, table, written)
            raise TransientError(f"{table}: files were replaced meanwhile; look again, and restore again")
        return msgspec.structs.replace(outlook, version=version)

    def _parts(self) -> tuple[list[_Part], list[_Part]]:
        """Of the files that come back and of those that go, those with rows of the game."""
        back, out = self.whole.changes()
        self.whole.require_there(back)
        return list(self._with_ours(back)), list(self._with_ours(out))

    def _with_ours(self, adds: Sequence[dict[str, Any]]) -> Iterator[_Part]:
        store, table = self.whole.store, self.whole.history.table
        columns = schema_of(open_table(store.location, table))
        for file in map(entry_of, adds):
            rows = dataset(store.location, table, columns, [file]).to_table().drop_columns(list(file.partition))
            ours = pc.fill_null(pc.is_in(rows[_GAME], value_set=pa.array(sorted(self.names), pa.string())), False)
            if pc.any(ours).as_py():
                yield _Part(file, rows.filter(ours).combine_chunks(), rows.filter(pc.invert(ours)).combine_chunks())

    def _outlook(self, back: Sequence[_Part], out: Sequence[_Part]) -> Restored:
        history = self.whole.history
        return Restored(
            table=history.table,
            from_version=history.newest,
            to_version=self.whole.version,
            rows_out=sum(len(part.ours) for part in out),
            rows_back=sum(len(part.ours) for part in back),
            files_out=len(out),
            files_back=len(back),
            batches=history.batches_after(self.whole.version),
        )

    def _actions(self, out: Sequence[_Part], written: Sequence[DataFile]) -> list[dict[str, Any]]:
        now = now_milliseconds()
        info = {
            "timestamp": now,
            "operation": "RESTORE",
            "operationParameters": {"version": str(self.whole.version), "games": ", ".join(sorted(self.names))},
            "isBlindAppend": False,
            "engineInfo": ENGINE,
            REBUILT_NOTE: str(len(written)),
        }
        removed = [remove_action(part.file, now) for part in out]
        return [{"commitInfo": info}, *removed, *(add_action(file, now) for file in written)]


def names_in(store: Store, table: str) -> frozenset[str]:
    """The names of games that the events of a game's table give."""
    handle = open_table(store.location, table)
    rows = dataset(store.location, table, schema_of(handle), live_files(handle)).to_table(columns=[_GAME])
    return frozenset(name for name in pc.unique(rows[_GAME]).to_pylist() if name is not None)
