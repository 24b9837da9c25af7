"""The changes of a silver table since the last refresh of a gold table: files added, and files replaced.

It reads only the commits since then, so the cost grows with the number of changes, not with the table's size.
Source: Delta Transaction Log Protocol, headings "Delta Log Entries" and "Actions".
"""

import hashlib
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from datetime import date

import msgspec

from gamelake.delta.log.codec import (
    ERASURE_NOTE,
    Action,
    FileEntry,
    commit_info_of,
    contents_of,
    decode_entry,
    entry_path,
    following_entries,
)
from gamelake.objects.store import Store


class TablePosition(msgspec.Struct, frozen=True):
    """The version of a table up to which it was read.

    Attributes:
        version: the version.
        entry: the SHA-256 digest, in hex, of the version's log entry. It differs if the table was dropped and created
            again.
        schema: the table's schema at that version, as Delta's JSON.
    """

    version: int
    entry: str
    schema: str


@dataclass(slots=True)
class ReplacedFiles:
    """The files that one commit replaced when it deleted, restored or changed rows.

    Attributes:
        removed: the files that the commit removed.
        added: the files that the commit added.
    """

    removed: list[FileEntry] = field(default_factory=list)
    added: list[FileEntry] = field(default_factory=list)


@dataclass(slots=True)
class TableChanges:
    """The effect of a table's commits, up to a position.

    Attributes:
        position: the version of the last of these commits.
        appended: files of commits that only added rows.
        replaced: files of commits that removed rows, except `erased`.
        erased: files of erasures of players that removed only files from before these commits.
    """

    position: TablePosition
    appended: list[FileEntry] = field(default_factory=list)
    replaced: list[ReplacedFiles] = field(default_factory=list)
    erased: list[ReplacedFiles] = field(default_factory=list)
    _new_paths: set[str] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        """True if no row was added or removed."""
        return not self.appended and not self.replaced and not self.erased

    @property
    def days(self) -> frozenset[date | None]:
        """The days whose rows may have changed; None for files without a day."""
        exchanged = [file for each in (*self.replaced, *self.erased) for file in (*each.removed, *each.added)]
        return frozenset(map(day_of, [*self.appended, *exchanged]))

    def without(self, days: Set[date | None]) -> "TableChanges":
        """Return the changes without those of some days."""

        def others(files: Sequence[FileEntry]) -> list[FileEntry]:
            return [file for file in files if day_of(file) not in days]

        replaced, erased = (
            [ReplacedFiles(others(each.removed), others(each.added)) for each in groups]
            for groups in (self.replaced, self.erased)
        )
        return TableChanges(self.position, others(self.appended), replaced, erased)

    def take(self, actions: list[Action]) -> None:
        """Add the effect of the next commit, without files that it only rewrote (compaction: `dataChange` is false)."""
        added = [_file(add) for add in contents_of(actions, "add") if add["dataChange"]]
        removed = [_file(remove) for remove in contents_of(actions, "remove") if remove["dataChange"]]
        if not removed:
            self.appended.extend(added)
        elif ERASURE_NOTE in commit_info_of(actions) and not any(
            each.relative_path in self._new_paths for each in removed
        ):
            self.erased.append(ReplacedFiles(removed, added))
        else:
            self.replaced.append(ReplacedFiles(removed, added))
        self._new_paths.update(add["path"] for add in contents_of(actions, "add"))


def day_of(file: FileEntry) -> date | None:
    """Return the day of a file's rows, or None if it has none."""
    value = file.partition.get("event_date")
    return None if value is None else date.fromisoformat(value)


def position_at(store: Store, table: str, version: int, schema: str) -> TablePosition | None:
    """Return a version as a position to continue from, or None if its log entry no longer exists."""
    entry = store.get(entry_path(table, version))
    return None if entry is None else TablePosition(version, _digest(entry), schema)


def is_newest(store: Store, table: str, version: int, entry: str = "") -> bool:
    """Return True if a table is still at a version; needs two small reads.

    Args:
        store: the lakehouse.
        table: the table's path.
        version: the version that it was at.
        entry: the digest of that version's log entry, as in `TablePosition`; "" accepts any.
    """
    standing = store.get(entry_path(table, version))
    if standing is None or entry not in {"", _digest(standing)}:
        return False
    return store.get(entry_path(table, version + 1)) is None


def changes_since(store: Store, table: str, position: TablePosition) -> TableChanges | None:
    """Read the effect of the commits after a position; return None if they can't be followed from there.

    They can't be followed if the log was cleaned up beyond the position, or if the table was dropped and created again.
    Neither can they if another writer used deletion vectors: the file with the deleted rows stays, and a later
    compaction, which seems to change no row, drops them.
    """
    standing = store.get(entry_path(table, position.version))
    if standing is None or _digest(standing) != position.entry:
        return None
    changes = TableChanges(position)
    for version, entry in following_entries(store, table, position.version):
        actions = decode_entry(entry)
        if any(each.get("deletionVector") for kind in ("add", "remove") for each in contents_of(actions, kind)):
            return None
        changes.take(actions)
        schema = next((each["schemaString"] for each in contents_of(actions, "metaData")), changes.position.schema)
        changes.position = TablePosition(version, _digest(entry), schema)
    return changes


def _file(action: Action) -> FileEntry:
    return FileEntry(action["path"], action.get("size") or 0, action.get("partitionValues") or {})


def _digest(entry: bytes) -> str:
    return hashlib.sha256(entry).hexdigest()
