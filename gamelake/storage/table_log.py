"""A table's transaction log, replayed commit by commit."""

from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import unquote

import msgspec

from gamelake.storage.delta_log import (
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
from gamelake.storage.manifest_checkpoints import (
    LogCheckpoint,
    LoggedErasure,
    LoggedFile,
    read_log_removals,
    read_newest_log_checkpoint,
)
from gamelake.storage.store import Store
from gamelake.storage.table_features import OWN_READER, OWN_WRITER


class _FileAction(msgspec.Struct):
    """Of an add or remove action, what a removal needs."""

    path: str
    removed_at: int | None = msgspec.field(name="deletionTimestamp", default=None)


class _FileLine(msgspec.Struct):
    """A line of an entry, without the actions that are about no file."""

    add: _FileAction | None = None
    remove: _FileAction | None = None


_FILE_LINES = msgspec.json.Decoder(_FileLine)


def removal_times(store: Store, table: str, paths: Collection[str] | None = None) -> dict[str, int]:
    """When a table's log last removed files; memory grows with these alone, not with the history.

    Args:
        store: the lakehouse.
        table: its path.
        paths: under the table's folder; None: all.

    Returns:
        Milliseconds since 1970 by path; without files that were never removed, or were added again since.
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
    """A table's state and history by its commits.

    Attributes:
        appended: files with new data; not those that an erasure or a rewrite wrote, or a restore added again.
        live: files of the newest version, by path.
        removed: by path, when a file was removed, in milliseconds since 1970.
        erasures: the commits of erasures, in order.
        adds: the add actions of the live files, by path.
        schema: the JSON of the newest columns; empty if neither the entries nor the log checkpoint has them.
        upgrade: the version whose commit set the protocol that counts, and its protocol action; None if that is one of
            the platform's own, or if neither the entries nor the log checkpoint has it.
        compacted_through: the version of the log checkpoint that stands for the entries up to it, -1 without one.
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
        """Rows of the table's newest version."""
        return sum(file.rows for file in self.live.values())

    @property
    def live_bytes(self) -> int:
        """Bytes of the table's newest version."""
        return sum(file.size for file in self.live.values())

    @property
    def vector_deleted_rows(self) -> int:
        """Rows of live files that deletion vectors delete: the platform writes none."""
        vectors = (add.get("deletionVector") for add in self.adds.values())
        return sum(int(vector["cardinality"]) for vector in vectors if vector)

    @property
    def erased_rows(self) -> int:
        """Rows that erasures removed."""
        return sum(erasure.rows for erasure in self.erasures)

    @classmethod
    def read(cls, store: Store, table: str) -> "TableLog":
        """Replay all commits of a table, from its newest log checkpoint on if it has one."""
        checkpoint = read_newest_log_checkpoint(store, table)
        log = cls.of(checkpoint) if checkpoint else cls()
        for version, entry in entries_after(store, table, log.compacted_through):
            log.take(version, decode_entry(entry))
        return log

    @classmethod
    def of(cls, checkpoint: LogCheckpoint) -> "TableLog":
        """The state that a log checkpoint has."""
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
            # A restore adds a file again: no two files ever have the same name.
            is_back = self.removed.pop(file.path, None) is not None
            back += rows
            if add["dataChange"] and not run and not is_back and REBUILT_NOTE not in info:
                self.appended.append(file)
        if run:
            self.erasures.append(LoggedErasure(version, run, sum(gone) - back, len(gone)))

    def _remove(self, remove: Action) -> int:
        """Remove a file; gives its rows."""
        path = unquote(remove["path"])
        self.removed[path] = int(remove.get("deletionTimestamp") or 0)
        file = self.live.pop(path, None)
        self.adds.pop(path, None)
        return file.rows if file else 0
