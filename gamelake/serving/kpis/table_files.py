"""The files of a KPI table, and the commits that replace them by others.

Source: Delta Transaction Log Protocol, heading "Actions".
"""

import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.commits import CommitConflictError
from gamelake.delta.data_files import DataFile
from gamelake.delta.declared_table import DeclaredTable
from gamelake.delta.log.checkpoints import is_log_checkpoint_due
from gamelake.delta.log.codec import (
    ERASURE_NOTE,
    FileEntry,
    changes_rows,
    commit_info_of,
    decode_entry,
    following_entries,
    live_files,
    object_path,
    preceding_entries,
)
from gamelake.delta.open_tables import OpenTables
from gamelake.delta.owned_tables import OwnedTable, Replacement
from gamelake.delta.rewrites import discard
from gamelake.delta.tables import open_table
from gamelake.objects.store import Store
from gamelake.serving.gold.runs import ROWS_PER_RUN, KeyRun, runs_of, sorted_by_key

GENERATION_NOTE = "gamelake.kpis"
# A replaced file is deleted by a commit after this time; by then its readers have finished.
_GRACE_SECONDS = 900.0
_UNIQUE = frozenset({"gamer_id", "active", "payers", "new", "ever", "new_payers", "members"})
_PROPERTIES = {"delta.logRetentionDuration": "interval 1 days"}
# Files that were used last are kept in memory, up to this number of rows.
_RECENT_ROWS = 2 * ROWS_PER_RUN


@dataclass(frozen=True, slots=True)
class FileChange:
    """The files of one game in one KPI table that a refresh replaces.

    Attributes:
        written: new files, which no commit names yet.
        removed: the committed files that they replace.
    """

    written: list[DataFile] = field(default_factory=list)
    removed: list[FileEntry] = field(default_factory=list)


@dataclass(slots=True)
class TableFilesOf:
    """One KPI table at its newest version.

    Call `open` before anything else, and again after each commit or conflict. One thread uses it at a time.

    Attributes:
        store: the lakehouse.
        definition: the table.
    """

    store: Store
    definition: DeclaredTable
    _handle: DeltaTable | None = None
    _is_void: bool = False
    _files: list[FileEntry] = field(default_factory=list)
    _opened: OpenTables = field(init=False)
    _superseded: deque[tuple[float, str]] = field(default_factory=deque)
    _read: dict[str, pa.Table] = field(default_factory=dict)
    _recent: OrderedDict[str, pa.Table] = field(default_factory=OrderedDict)
    _runs: list[KeyRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Prepare to keep the table open from refresh to refresh."""
        self._opened = OpenTables(self.store, most=1)

    @property
    def _table(self) -> OwnedTable:
        definition = self.definition
        return OwnedTable(
            store=self.store,
            path=definition.path,
            schema=definition.schema,
            partition_by=definition.partition_by,
            properties=_PROPERTIES,
            comments=definition.comments,
            unique=_UNIQUE,
        )

    @property
    def path(self) -> str:
        """The table's path in the lakehouse."""
        return self.definition.path

    @property
    def files(self) -> list[FileEntry]:
        """The files whose rows count; none if the next commit replaces all of them."""
        return [] if self._is_void else self._files

    def open(self) -> None:
        """Open the newest version, if the table exists."""
        self._is_void = False
        self._runs.clear()
        try:
            self._handle = self._opened.newest(self.path)
        except TableNotFoundError:
            self._handle, self._files = None, []
        else:
            self._files = live_files(self._handle)

    def notes(self) -> Mapping[str, Any]:
        """Return the notes of this job's newest commit; empty if another writer has changed rows since.

        An erasure is an exception. It deletes rows only from the table with the players' pseudonyms.
        """
        if self._handle is None:
            return {}
        for _, actions in preceding_entries(self.store, self.path, self._handle.version()):
            info = commit_info_of(actions)
            if GENERATION_NOTE in info:
                return info
            is_erasure = ERASURE_NOTE in info and "gamer_id" in self.definition.columns
            if changes_rows(actions) and not is_erasure:
                return {}
        return {}

    @property
    def version(self) -> int:
        """The version that is open; -1 if there is no table."""
        return -1 if self._handle is None else self._handle.version()

    def erased_since(self, version: int) -> bool:
        """Return True if an erasure has deleted rows since a version, or if the log is too short to exclude it."""
        entries = list(following_entries(self.store, self.path, version))
        is_whole = version + len(entries) >= self.version
        return not is_whole or any(ERASURE_NOTE in commit_info_of(decode_entry(entry)) for _, entry in entries)

    def make_void(self) -> None:
        """Ignore all existing files from now on; the next commit replaces them."""
        self._is_void = True

    def rows_of(self, file: FileEntry) -> pa.Table:
        """Read a file's rows, in order: all columns except those that the table is partitioned by.

        Raises:
            FileNotFoundError: the file is deleted already.
        """
        content = self.store.get(object_path(self.store.location, self.path, file.relative_path))
        if content is None:
            raise FileNotFoundError(f"{self.path}/{file.relative_path} is gone")
        return pq.read_table(pa.BufferReader(content))

    def rows(self) -> pa.Table:
        """Read all rows, with all columns and their types; files that were read before are kept in memory."""
        self._read = {file.path: self._read.get(file.path) or self.rows_of(file) for file in self.files}
        schema = self.definition.schema
        return pa.concat_tables([schema.empty_table(), *(each.cast(schema) for each in self._read.values())])

    def runs(self) -> Sequence[KeyRun]:
        """Return the files whose rows count, with the bounds of their rows' keys; see `DeclaredTable.sorted_by`."""
        if self._handle is not None and not self._runs and not self._is_void:
            self._runs.extend(runs_of(self._handle, self.definition.sorted_by))
        return self._runs

    def recent_rows_of(self, file: FileEntry) -> pa.Table:
        """Return a file's rows and columns as `rows_of` does; read the file only if it is not in memory."""
        rows = self._recent.get(file.path)
        if rows is None:
            rows = self.rows_of(file)
        self.keep(file.path, rows)
        return rows

    def keep(self, path: str, rows: pa.Table) -> None:
        """Keep a file's rows in memory (columns as in `rows_of`), and forget the least recently used files."""
        self._recent[path] = rows
        self._recent.move_to_end(path)
        while len(self._recent) > 1 and sum(map(len, self._recent.values())) > _RECENT_ROWS:
            self._recent.popitem(last=False)

    def write(self, rows: pa.Table, partition: Mapping[str, str | None]) -> DataFile:
        """Write rows as a file that no commit names yet.

        Args:
            rows: all columns except those that the table is partitioned by.
            partition: the value of each partition column.
        """
        return self._table.write(rows, partition)

    def discard(self, files: Iterable[DataFile]) -> None:
        """Delete files that no commit names."""
        discard(self.store, self.path, files)

    def replace_rows(self, touched: pa.Table, rows: pa.Table, notes: Mapping[str, str]) -> None:
        """Replace the rows of some keys in one commit, unless nothing changes.

        Args:
            touched: the key columns of the rows to remove.
            rows: the rows to add, with all columns, in any order.
            notes: the notes of the commit.

        Raises:
            CommitConflictError: another writer has committed since the table was opened.
        """
        keys, old = list(self.definition.keys), self.rows()
        kept = old.join(touched.select(keys).group_by(keys).aggregate([]), keys, join_type="left anti")
        made = sorted_by_key(pa.concat_tables([kept.cast(self.definition.schema), rows]), keys)
        if self._is_void or not made.equals(sorted_by_key(old, keys)):
            self.commit([self.write(made, {})] if len(made) else [], self.files, notes)

    def commit(self, files: Sequence[DataFile], removed: Sequence[FileEntry], notes: Mapping[str, str]) -> int:
        """Replace files by others in one commit.

        Args:
            files: the files to add.
            removed: the files to remove; after `make_void`, all files are removed instead.
            notes: the notes of the commit.

        Returns:
            The version of the new commit.

        Raises:
            CommitConflictError: another writer has committed since the table was opened.
        """
        version, removed = self.version + 1, self._files if self._is_void else removed
        change = Replacement(
            files=files,
            removed=removed,
            transaction=BatchTransaction("kpis", version),
            notes=notes,
            sets_columns=self._is_void,
        )
        if not self._table.commit(self._handle, change):
            raise CommitConflictError
        if is_log_checkpoint_due(self.path, version):
            open_table(self.store.location, self.path).cleanup_metadata()
        now = time.monotonic()
        self._superseded.extend((now, f"{self.path}/{file.relative_path}") for file in removed)
        while self._superseded and now - self._superseded[0][0] > _GRACE_SECONDS:
            self.store.delete(self._superseded.popleft()[1])
        return version
