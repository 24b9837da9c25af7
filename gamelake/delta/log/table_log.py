"""A table's transaction log, replayed commit by commit."""

from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import unquote

import msgspec

from gamelake.delta.log.codec import (
    ERASURE_NOTE,
    REBUILT_NOTE,
    Action,
    commit_info_of,
    contents_of,
    decode_entry,
    entries_after,
    row_count,
    transactions_of,
)
from gamelake.delta.log.history_checkpoints import (
    LogCheckpoint,
    LoggedErasure,
    LoggedFile,
    read_log_removals,
    read_newest_log_checkpoint,
)
from gamelake.delta.log.table_features import OWN_READER, OWN_WRITER
from gamelake.objects.store import Store


class _FileAction(msgspec.Struct):
    """The part of an add or remove action that a removal needs."""

    path: str
    removed_at: int | None = msgspec.field(name="deletionTimestamp", default=None)


class _FileLine(msgspec.Struct):
    """A line of an entry; actions that don't concern a file leave both fields None."""

    add: _FileAction | None = None
    remove: _FileAction | None = None


_FILE_LINES = msgspec.json.Decoder(_FileLine)


def removal_times(store: Store, table: str, paths: Collection[str] | None = None) -> dict[str, int]:
    """Find when a table's log last removed files.

    The memory grows only with the number of these files, not with the history.

    Args:
        store: the lakehouse.
        table: the table's path.
        paths: the files under the table's folder to find; None for all.

    Returns:
        Milliseconds since 1970 by path. Files that were never removed, or were added again since, are omitted.
    """
    wanted = None if paths is None else frozenset(paths)
    checkpoint = read_log_removals(store, table)
    former = checkpoint.removed if checkpoint else {}
    removed = {path: at for path, at in former.items() if wanted is None or path in wanted}
    for _, entry in entries_after(store, table, checkpoint.version if checkpoint else -1):
        for line in entry.splitlines():
            if not line.strip():
                continue
            actions = _FILE_LINES.decode(line)
            if actions.remove is not None:
                path = unquote(actions.remove.path)
                if wanted is None or path in wanted:
                    removed[path] = actions.remove.removed_at or 0
            elif actions.add is not None and removed:
                removed.pop(unquote(actions.add.path), None)
    return removed


@dataclass(slots=True)
class TableLog:
    """A table's state and history, built from its commits.

    One thread calls `take` for each commit, in ascending order of versions.

    Attributes:
        appended: files with new data, in order. Files that an erasure or a rewrite wrote, or that a restore added
            again, are not included.
        live: files of the newest version, by path.
        removed: when each removed file was removed, in milliseconds since 1970, by path.
        erasures: the commits of erasures, in order.
        adds: the add actions of the live files, by path.
        schema: the JSON of the newest columns; empty if neither the entries nor the log checkpoint has them.
        upgrade: the version that set the protocol in force, and its protocol action. None if the protocol is not newer
            than the platform's own, or if neither the entries nor the log checkpoint has it.
        compacted_through: the version of the log checkpoint that replaces the entries up to it; -1 without one.
    """

    appended: list[LoggedFile] = field(default_factory=list)
    live: dict[str, LoggedFile] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    erasures: list[LoggedErasure] = field(default_factory=list)
    adds: dict[str, Action] = field(default_factory=dict)
    schema: str = ""
    upgrade: tuple[int, Action] | None = None
    compacted_through: int = -1

    @property
    def live_rows(self) -> int:
        """The number of rows in the live files."""
        return sum(file.rows for file in self.live.values())

    @property
    def live_bytes(self) -> int:
        """The size of the live files in bytes."""
        return sum(file.size for file in self.live.values())

    @property
    def vector_deleted_rows(self) -> int:
        """The number of rows of live files that deletion vectors delete; only other programs write deletion vectors."""
        vectors = (add.get("deletionVector") for add in self.adds.values())
        return sum(int(vector["cardinality"]) for vector in vectors if vector)

    @property
    def erased_rows(self) -> int:
        """The number of rows that erasures removed."""
        return sum(erasure.rows for erasure in self.erasures)

    @classmethod
    def read(cls, store: Store, table: str) -> "TableLog":
        """Replay all commits of a table, from its newest log checkpoint on if it has one.

        Raises:
            ValueError: an entry is empty or damaged.
        """
        checkpoint = read_newest_log_checkpoint(store, table)
        log = cls.of(checkpoint) if checkpoint else cls()
        for version, entry in entries_after(store, table, log.compacted_through):
            log.take(version, decode_entry(entry))
        return log

    @classmethod
    def of(cls, checkpoint: LogCheckpoint) -> "TableLog":
        """Return the state of a log checkpoint."""
        adds = {unquote(add["path"]): add for add in checkpoint.adds}
        return cls(
            appended=list(checkpoint.appended),
            live={file.path: file for file in checkpoint.live},
            removed=dict(checkpoint.removed),
            erasures=list(checkpoint.erasures),
            adds=adds,
            schema=checkpoint.schema,
            upgrade=checkpoint.upgrade,
            compacted_through=checkpoint.version,
        )

    def take(self, version: int, actions: list[Action]) -> None:
        """Apply the next commit."""
        for protocol in contents_of(actions, "protocol"):
            newer = protocol["minReaderVersion"] > OWN_READER or protocol["minWriterVersion"] > OWN_WRITER
            self.upgrade = (version, protocol) if newer else None
        transaction = next(iter(transactions_of(actions)), "")
        info = commit_info_of(actions)
        run = info.get(ERASURE_NOTE, "")
        gone = [self._remove(remove) for remove in contents_of(actions, "remove")]
        for metadata in contents_of(actions, "metaData"):
            self.schema = str(metadata["schemaString"])
        back = 0
        for add in contents_of(actions, "add"):
            rows = row_count(add)
            file = LoggedFile(version, unquote(add["path"]), transaction, rows, int(add["size"]))
            self.live[file.path], self.adds[file.path] = file, add
            # A removed file that is added again was restored: no two files ever have the same name.
            is_back = self.removed.pop(file.path, None) is not None
            back += rows
            if add["dataChange"] and not run and not is_back and REBUILT_NOTE not in info:
                self.appended.append(file)
        if run:
            self.erasures.append(LoggedErasure(version, run, sum(gone) - back, len(gone)))

    def _remove(self, remove: Action) -> int:
        """Remove a file; return the number of its rows, 0 if it was not live."""
        path = unquote(remove["path"])
        self.removed[path] = int(remove.get("deletionTimestamp") or 0)
        file = self.live.pop(path, None)
        self.adds.pop(path, None)
        return file.rows if file else 0
