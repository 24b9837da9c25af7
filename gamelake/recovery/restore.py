"""Restores a table to an older version with a new commit, which adds removed files again and removes newer ones.

The streams continue. Rows that they append after the plan was made stay. No batch is committed twice, since a table's
log keeps the transactions of all batches.
Source: Delta Transaction Log Protocol, headings "Add File and Remove File" and "Transaction Identifiers".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.contract.games import GamesContract
from gamelake.delta.appends import schema_of
from gamelake.delta.data_files import DataFile, new_file_name
from gamelake.delta.log.codec import (
    REBUILT_NOTE,
    Action,
    FileEntry,
    add_action,
    commit_info,
    deleted_by_vectors,
    now_milliseconds,
    remove_action,
    row_count,
)
from gamelake.delta.rewrites import commit_rewrite, discard, write_replacement
from gamelake.delta.tables import open_table
from gamelake.layers.routing import Router
from gamelake.model.errors import StoreError, TransientError
from gamelake.model.naming import game_table
from gamelake.objects.leases import Lease
from gamelake.objects.vacuum_marks import may_be_vacuumed
from gamelake.privacy.erasure_records import ErasureRecords
from gamelake.recovery.table_history import RestoreError, TableHistory
from gamelake.scans.datasets import dataset

_GAME = "game_name"


class RestoredTable(msgspec.Struct, frozen=True, kw_only=True):
    """The result of restoring a table, or of its dry run.

    Attributes:
        table: path of the table.
        from_version: the newest version before the restore.
        to_version: the version that was restored.
        rows_removed: number of rows that were removed.
        rows_restored: number of rows that were added again.
        files_removed: number of files with removed rows.
        files_restored: number of files with restored rows.
        batches: the batches whose rows were removed, as `application/batch`.
        version: version of the commit; None in a dry run, or if nothing changed.
    """

    table: str
    from_version: int
    to_version: int
    rows_removed: int
    rows_restored: int
    files_removed: int
    files_restored: int
    batches: tuple[str, ...]
    version: int | None = None


@dataclass(frozen=True, slots=True)
class TableRestore:
    """Restores one table to a version.

    Attributes:
        history: the history of the table.
        version: the version to restore.
    """

    history: TableHistory
    version: int

    def dry_run(self) -> RestoredTable:
        """Return what the restore would change; write nothing.

        Raises:
            RestoreError: files of the version are missing.
        """
        return self._planned(*self.changes())

    def commit(self, lease: Lease) -> RestoredTable:
        """Commit the restore.

        Raises:
            RestoreError: files of the version are missing, or an erasure is deleting them.
            TransientError: another process replaced files meanwhile.
        """
        back, out = self.changes()
        # Before the check that the files exist: a stalled vacuum or erasure may still delete files, and may end between
        # an earlier check and this one.
        is_vacuumed = may_be_vacuumed(self.history.store, self.history.table)
        self.require_kept(back)
        planned = self._planned(back, out)
        if not back and not out:
            return planned
        actions = self._actions(self._copied(back) if is_vacuumed else back, out, is_copied=is_vacuumed)
        return self.committed(planned, actions, lease)

    def changes(self) -> tuple[list[Action], list[Action]]:
        """Find the add actions of the files to restore, and of the files to remove.

        Raises:
            StoreError: files have deletion vectors, so a file's rows differ between versions.
        """
        then, now = self.history.live_at(self.version), self.history.live_at(self.history.newest)
        if any(add.get("deletionVector") for adds in (then, now) for add in adds.values()):
            raise StoreError(deleted_by_vectors(self.history.table))
        return [then[path] for path in then if path not in now], [now[path] for path in now if path not in then]

    def titles(self) -> frozenset[str]:
        """Return the values of `game_name` that a game's table had at the version.

        Raises:
            RestoreError: files of the version are missing.
        """
        then = list(self.history.live_at(self.version).values())
        self.require_there(then)
        table, location = self.history.table, self.history.store.location
        files = dataset(location, table, schema_of(open_table(location, table)), map(FileEntry.added_by, then))
        return frozenset(files.to_table(columns=[_GAME])[_GAME].drop_null().unique().to_pylist())

    def require_there(self, back: Sequence[Action]) -> None:
        """Check that files still exist.

        Raises:
            RestoreError: some are missing.
        """
        if missing := self.history.missing(back):
            raise self._error_about(missing)

    def _error_about(self, missing: int) -> RestoreError:
        return RestoreError(
            f"{self.history.table}: {missing} of the files of version {self.version} are missing: vacuum or an erasure "
            "deleted them; choose a version within the retention"
        )

    def require_kept(self, back: Sequence[Action]) -> None:
        """Check that no erasure is deleting files that are restored, or whose rows are.

        Raises:
            RestoreError: one that has not ended is.
        """
        going = ErasureRecords(self.history.store).being_deleted(self.history.table) if back else frozenset()
        if count := sum(unquote(add["path"]) in going for add in back):
            raise RestoreError(
                f"{self.history.table}: an erasure that has not ended is deleting {count} of the files of version "
                f"{self.version}. Finish it (jobs/forget_player.py --sweep --also-rows), and choose a later version"
            )

    def _planned(self, back: Sequence[Action], out: Sequence[Action]) -> RestoredTable:
        self.require_there(back)
        return self.plan(list(map(row_count, back)), list(map(row_count, out)))

    def plan(self, back: Sequence[int], out: Sequence[int]) -> RestoredTable:
        """Describe the restore from the row counts of the files to restore (`back`) and to remove (`out`)."""
        return RestoredTable(
            table=self.history.table,
            from_version=self.history.newest,
            to_version=self.version,
            rows_removed=sum(out),
            rows_restored=sum(back),
            files_removed=len(out),
            files_restored=len(back),
            batches=self.history.batches_after(self.version),
        )

    def _copied(self, adds: Sequence[Action]) -> list[Action]:
        """Copy files to new names, and return their add actions."""
        table, copies = self.history.table, []
        for add in adds:
            path = new_file_name(add["path"].rpartition("/")[0])
            try:
                self.history.store.copy(f"{table}/{unquote(add['path'])}", f"{table}/{unquote(path)}")
            except FileNotFoundError as error:
                raise self._error_about(1) from error
            copies.append({**add, "path": path})
        return copies

    def _actions(self, back: Sequence[Action], out: Sequence[Action], *, is_copied: bool) -> list[Action]:
        now = now_milliseconds()
        metrics = {"numRestoredFiles": len(back), "numRemovedFiles": len(out)}
        notes = {REBUILT_NOTE: str(len(back))} if is_copied else {}
        info = commit_info(now, "RESTORE", {"version": str(self.version)}, metrics=metrics, notes=notes)
        removes = [remove_action(FileEntry.added_by(add), now) for add in out]
        return [info, *removes, *({"add": {**add, "dataChange": True}} for add in back)]

    def committed(
        self, planned: RestoredTable, actions: Sequence[Action], lease: Lease, written: Sequence[DataFile] = ()
    ) -> RestoredTable:
        """Commit a planned restore, and return its result; after a conflict, delete the files `written` for it.

        Raises:
            TransientError: another process replaced files meanwhile.
        """
        store, table = self.history.store, self.history.table
        version = commit_rewrite(store, table, planned.from_version, actions, lease)
        if version is None:
            discard(store, table, written)
            raise TransientError(f"{table}: files were replaced meanwhile; run the dry run and the restore again")
        return msgspec.structs.replace(planned, version=version)


@dataclass(frozen=True, slots=True)
class RestoredTitles:
    """Decides which titles (values of `game_name`) belong to a game: those of the contract, and unclaimed former ones.

    A title in the game's own table is not sufficient: a faulty version may have written another game's events to it.

    Attributes:
        game: the game's name.
        contract: the games contract.
        tables: the games' tables that exist.
        former: the titles that the game's table had at the version to restore.
    """

    game: str
    contract: GamesContract
    tables: frozenset[str]
    former: frozenset[str]

    def have(self, titles: pa.ChunkedArray) -> pa.ChunkedArray:
        """Flag the rows of the game: a bool for each title (string; may be null), false for null."""
        distinct = titles.unique().drop_null()
        router = Router(self.contract, self.tables)
        routed = [router.tables[code] if code >= 0 else "" for code in router.route(distinct)]
        pairs = zip(distinct.to_pylist(), routed, strict=True)
        own, former = game_table(self.game), self.former
        claimed = self.tables | {game.table for game in self.contract.games}
        ours = [title for title, table in pairs if table == own or (title in former and table not in claimed)]
        return pc.fill_null(pc.is_in(titles, value_set=pa.array(ours, pa.string())), False)


@dataclass(frozen=True, slots=True)
class _Part:
    """A file of a table of all games, and its rows, without the partition columns.

    Attributes:
        file: the file.
        ours: rows of the game to restore.
        others: rows of other games.
    """

    file: FileEntry
    ours: pa.Table
    others: pa.Table


@dataclass(frozen=True, slots=True)
class GameRestore:
    """Restores the rows of one game in a table of all games.

    Attributes:
        whole: the restore of all rows of the table.
        titles: decides which rows belong to the game.
    """

    whole: TableRestore
    titles: RestoredTitles

    def dry_run(self) -> RestoredTable:
        """Return what the restore would change; write nothing.

        Raises:
            RestoreError: files of the version are missing.
        """
        return self._planned(*self._parts())

    def commit(self, lease: Lease) -> RestoredTable:
        """Commit the restore.

        Raises:
            RestoreError: files of the version are missing.
            TransientError: another process replaced files meanwhile.
        """
        back, out = self._parts()
        planned = self._planned(back, out)
        if not back and not out:
            return planned
        store, table = self.whole.history.store, self.whole.history.table
        written = [
            *(write_replacement(store, table, part.file, part.others) for part in out if len(part.others)),
            *(write_replacement(store, table, part.file, part.ours) for part in back),
        ]
        now, parameters = now_milliseconds(), {"version": str(self.whole.version), "game": self.titles.game}
        info = commit_info(now, "RESTORE", parameters, notes={REBUILT_NOTE: str(len(written))})
        removes = [remove_action(part.file, now) for part in out]
        actions = [info, *removes, *(add_action(file, now) for file in written)]
        return self.whole.committed(planned, actions, lease, written)

    def _parts(self) -> tuple[list[_Part], list[_Part]]:
        """Read the files with rows of the game: first the files to restore, then the files to remove."""
        back, out = self.whole.changes()
        self.whole.require_kept(back)
        self.whole.require_there(back)
        return list(self._with_ours(back)), list(self._with_ours(out))

    def _with_ours(self, adds: Sequence[Action]) -> Iterator[_Part]:
        location, table = self.whole.history.store.location, self.whole.history.table
        columns = schema_of(open_table(location, table))
        for file in map(FileEntry.added_by, adds):
            rows = dataset(location, table, columns, [file]).to_table().drop_columns(list(file.partition))
            ours = self.titles.have(rows[_GAME])
            if pc.any(ours).as_py():
                yield _Part(file, rows.filter(ours).combine_chunks(), rows.filter(pc.invert(ours)).combine_chunks())

    def _planned(self, back: Sequence[_Part], out: Sequence[_Part]) -> RestoredTable:
        return self.whole.plan([len(part.ours) for part in back], [len(part.ours) for part in out])
