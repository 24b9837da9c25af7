"""The changes of a silver table since the last refresh of a gold table: files added, and files replaced.

Only the commits since then are read, so that this costs as much as what is new, however large the table is.
Source: Delta Transaction Log Protocol, headings "Delta Log Entries" and "Actions".
"""

import hashlib
from dataclasses import dataclass, field
from datetime import date

import msgspec

from gamelake.storage.delta_log import Action, FileEntry, contents_of, decode_entry, entry_path, following_entries
from gamelake.storage.store import Store


class TablePosition(msgspec.Struct, frozen=True):
    """Up to where a table was read: the version, what its log entry was, and the table's columns then."""

    version: int
    entry: str
    schema: str


@dataclass(slots=True)
class ReplacedFiles:
    """What one commit put in the place of what: it deleted, restored, or changed rows."""

    removed: list[FileEntry] = field(default_factory=list)
    added: list[FileEntry] = field(default_factory=list)


@dataclass(slots=True)
class TableChanges:
    """What a table's commits did, up to a position."""

    position: TablePosition
    appended: list[FileEntry] = field(default_factory=list)
    replaced: list[ReplacedFiles] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether no row has come or gone."""
        return not self.appended and not self.replaced

    @property
    def days(self) -> frozenset[date | None]:
        """The days whose rows are not what they were."""
        touched = [*self.appended, *(file for each in self.replaced for file in (*each.removed, *each.added))]
        return frozenset(map(day_of, touched))


def day_of(file: FileEntry) -> date | None:
    """The day that a file's rows are of."""
    value = file.partition.get("event_date")
    return None if value is None else date.fromisoformat(value)


def position_at(store: Store, table: str, version: int, schema: str) -> TablePosition | None:
    """A version as a position to go on from; None if its log entry is no longer there."""
    entry = store.get(entry_path(table, version))
    return None if entry is None else TablePosition(version, _digest(entry), schema)


def is_newest(store: Store, table: str, version: int, entry: str = "") -> bool:
    """Whether a table is still at a version, by two small reads.

    Args:
        store: the lakehouse.
        table: its path.
        version: that it was at.
        entry: what `TablePosition` has of that version's log entry; empty: any.
    """
    standing = store.get(entry_path(table, version))
    if standing is None or entry not in {"", _digest(standing)}:
        return False
    return store.get(entry_path(table, version + 1)) is None


def changes_since(store: Store, table: str, position: TablePosition) -> TableChanges | None:
    """What the commits after a position did; None if they can't be followed from there.

    The log may have been cleaned up to beyond the position, or the table dropped and made again.
    """
    standing = store.get(entry_path(table, position.version))
    if standing is None or _digest(standing) != position.entry:
        return None
    changes = TableChanges(position)
    for version, entry in following_entries(store, table, position.version):
        actions = decode_entry(entry)
        _take(changes, actions)
        schema = next((each["schemaString"] for each in contents_of(actions, "metaData")), changes.position.schema)
        changes.position = TablePosition(version, _digest(entry), schema)
    return changes


def _take(changes: TableChanges, actions: list[Action]) -> None:
    """Files that were only rewritten (`dataChange` false: a compaction) change no row."""
    added = [_file(add) for add in contents_of(actions, "add") if add["dataChange"]]
    removed = [_file(remove) for remove in contents_of(actions, "remove") if remove["dataChange"]]
    if removed:
        changes.replaced.append(ReplacedFiles(removed, added))
    else:
        changes.appended.extend(added)


def _file(action: Action) -> FileEntry:
    return FileEntry(action["path"], action.get("size") or 0, action.get("partitionValues") or {})


def _digest(entry: bytes) -> str:
    return hashlib.sha256(entry).hexdigest()
