"""Sets a table back to an older version by one more commit: files that went since come back, those that came go.

The streams go on meanwhile. What they append after the plan was made stays, and a batch that was committed before is
not committed again, since a table never forgets which batches it has taken.
Source: Delta Transaction Log Protocol, headings "Add File and Remove File" and "Transaction Identifiers".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.model.errors import TransientError
from gamelake.recovery.table_history import RestoreError, TableHistory
from gamelake.storage.appends import schema_of
from gamelake.storage.data_files import DataFile
from gamelake.storage.datasets import dataset
from gamelake.storage.delta_log import (
    REBUILT_NOTE,
    Action,
    FileEntry,
    add_action,
    commit_info,
    live_files,
    now_milliseconds,
    remove_action,
    row_count,
)
from gamelake.storage.leases import Lease
from gamelake.storage.rewrites import commit_rewrite, discard, write_replacement
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table


class RestoredTable(msgspec.Struct, frozen=True, kw_only=True):
    """What setting a table back changes, or would change.

    `batches` are those whose rows go, as `application/batch`; `version` is the commit's, None before there is one.
    """

    table: str
    from_version: int
    to_version: int
    rows_out: int
    rows_back: int
    files_out: int
    files_back: int
    batches: tuple[str, ...]
    version: int | None = None


@dataclass(frozen=True, slots=True)
class TableRestore:
    """One table, and the version that it is to be like."""

    store: Store
    history: TableHistory
    version: int

    def dry_run(self) -> RestoredTable:
        """What would change.

        Raises:
            RestoreError: files that the version needs are gone.
        """
        return self._planned(*self.changes())

    def commit(self, lease: Lease) -> RestoredTable:
        """Change it.

        Raises:
            RestoreError: files that the version needs are gone.
            TransientError: another process replaced files meanwhile.
        """
        back, out = self.changes()
        planned = self._planned(back, out)
        if not back and not out:
            return planned
        actions = self._actions(back, out)
        version = commit_rewrite(self.store, self.history.table, planned.from_version, actions, lease)
        if version is None:
            raise TransientError(f"{self.history.table}: files were replaced meanwhile; look again, and restore again")
        return msgspec.structs.replace(planned, version=version)

    def changes(self) -> tuple[list[Action], list[Action]]:
        """The add actions of the files that come back, and of those that go."""
        then, now = self.history.live_at(self.version), self.history.live_at(self.history.newest)
        return [then[path] for path in then if path not in now], [now[path] for path in now if path not in then]

    def _planned(self, back: Sequence[Action], out: Sequence[Action]) -> RestoredTable:
        self.require_there(back)
        return RestoredTable(
            table=self.history.table,
            from_version=self.history.newest,
            to_version=self.version,
            rows_out=sum(map(row_count, out)),
            rows_back=sum(map(row_count, back)),
            files_out=len(out),
            files_back=len(back),
            batches=self.history.batches_after(self.version),
        )

    def require_there(self, back: Sequence[Action]) -> None:
        """See that files are still there.

        Raises:
            RestoreError: some are gone.
        """
        there = set(self.store.paths(self.history.table)) if back else set()
        gone = [add["path"] for add in back if f"{self.history.table}/{unquote(add['path'])}" not in there]
        if gone:
            raise RestoreError(
                f"{self.history.table}: {len(gone)} of the files of version {self.version} are gone, as vacuum or an "
                "erasure deletes them; choose a version within the retention"
            )

    def _actions(self, back: Sequence[Action], out: Sequence[Action]) -> list[Action]:
        now = now_milliseconds()
        metrics = {"numRestoredFiles": len(back), "numRemovedFiles": len(out)}
        info = commit_info(now, "RESTORE", {"version": str(self.version)}, metrics=metrics)
        removes = [remove_action(entry_of(add), now) for add in out]
        return [info, *removes, *({"add": {**add, "dataChange": True}} for add in back)]


def entry_of(add: Action) -> FileEntry:
    """The file that an add action names."""
    return FileEntry(add["path"], add["size"], add["partitionValues"])


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

    def dry_run(self) -> RestoredTable:
        """What would change.

        Raises:
            RestoreError: files that the version needs are gone.
        """
        return self._planned(*self._parts())

    def commit(self, lease: Lease) -> RestoredTable:
        """Change it.

        Raises:
            RestoreError: files that the version needs are gone.
            TransientError: another process replaced files meanwhile.
        """
        back, out = self._parts()
        planned = self._planned(back, out)
        if not back and not out:
            return planned
        store, table = self.whole.store, self.whole.history.table
        written = [
            *(write_replacement(store, table, part.file, part.others) for part in out if len(part.others)),
            *(write_replacement(store, table, part.file, part.ours) for part in back),
        ]
        version = commit_rewrite(store, table, planned.from_version, self._actions(out, written), lease)
        if version is None:
            discard(store, table, written)
            raise TransientError(f"{table}: files were replaced meanwhile; look again, and restore again")
        return msgspec.structs.replace(planned, version=version)

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

    def _planned(self, back: Sequence[_Part], out: Sequence[_Part]) -> RestoredTable:
        history = self.whole.history
        return RestoredTable(
            table=history.table,
            from_version=history.newest,
            to_version=self.whole.version,
            rows_out=sum(len(part.ours) for part in out),
            rows_back=sum(len(part.ours) for part in back),
            files_out=len(out),
            files_back=len(back),
            batches=history.batches_after(self.whole.version),
        )

    def _actions(self, out: Sequence[_Part], written: Sequence[DataFile]) -> list[Action]:
        now = now_milliseconds()
        parameters = {"version": str(self.whole.version), "games": ", ".join(sorted(self.names))}
        info = commit_info(now, "RESTORE", parameters, notes={REBUILT_NOTE: str(len(written))})
        removed = [remove_action(part.file, now) for part in out]
        return [info, *removed, *(add_action(file, now) for file in written)]


def names_in(store: Store, table: str) -> frozenset[str]:
    """The names of games that the events of a game's table give."""
    handle = open_table(store.location, table)
    rows = dataset(store.location, table, schema_of(handle), live_files(handle)).to_table(columns=[_GAME])
    return frozenset(name for name in pc.unique(rows[_GAME]).to_pylist() if name is not None)
