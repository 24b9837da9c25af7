"""A table's transaction log as it was written, commit by commit."""

from dataclasses import dataclass, field
from urllib.parse import unquote

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
from gamelake.storage.manifest_checkpoints import LogCheckpoint, LoggedErasure, LoggedFile, read_log_checkpoint
from gamelake.storage.store import Store


@dataclass(slots=True)
class TableLog:
    """What the commits of a table say.

    `appended` are files with new data, `live` those of the newest version, `removed` those that a commit took out
    (when, in milliseconds since 1970); what an erasure or a rewrite writes anew, or a restore brings back, is no new
    data. `adds` are the add actions of the live files; up to the version `folded` a statement stands for the entries.
    """

    appended: list[LoggedFile] = field(default_factory=list)
    live: dict[str, LoggedFile] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    erasures: list[LoggedErasure] = field(default_factory=list)
    adds: dict[str, Action] = field(default_factory=dict)
    folded: int = -1

    @property
    def live_rows(self) -> int:
        """Rows of the table's newest version."""
        return sum(file.rows for file in self.live.values())

    @property
    def live_bytes(self) -> int:
        """Bytes of the table's newest version."""
        return sum(file.size for file in self.live.values())

    @property
    def erased_rows(self) -> int:
        """Rows that erasures took out."""
        return sum(erasure.rows for erasure in self.erasures)

    @classmethod
    def read(cls, store: Store, table: str) -> "TableLog":
        """Read all commits of a table in order, from its statement on if it has one."""
        statement = read_log_checkpoint(store, table)
        log = cls.of(statement) if statement else cls()
        for version, entry in entries_after(store, table, log.folded):
            log.take(version, decode_entry(entry))
        return log

    @classmethod
    def of(cls, statement: LogCheckpoint) -> "TableLog":
        """What the commits say that a statement stands for."""
        adds = {unquote(add["path"]): add for add in statement.adds}
        return cls(
            appended=list(statement.appended),
            live={file.path: file for file in statement.live},
            removed=dict(statement.removed),
            erasures=list(statement.erasures),
            adds=adds,
            folded=statement.version,
        )

    def take(self, version: int, actions: list[Action]) -> None:
        """Take in the next commit."""
        transaction = next(iter(transactions_of(actions)), "")
        info = commit_info_of(actions)
        run = info.get(ERASURE_NOTE, "")
        gone = [self._remove(remove) for remove in contents_of(actions, "remove")]
        back = 0
        for add in contents_of(actions, "add"):
            rows = row_count(add)
            file = LoggedFile(version, unquote(add["path"]), transaction, rows, int(add["size"]))
            self.live[file.path], self.adds[file.path] = file, add
            # A restore brings a file back that was added before: no name is ever given twice.
            is_back = self.removed.pop(file.path, None) is not None
            back += rows
            if add["dataChange"] and not run and not is_back and REBUILT_NOTE not in info:
                self.appended.append(file)
        if run:
            self.erasures.append(LoggedErasure(version, run, sum(gone) - back, len(gone)))

    def _remove(self, remove: Action) -> int:
        """Take a file out; gives its rows."""
        path = unquote(remove["path"])
        self.removed[path] = int(remove.get("deletionTimestamp") or 0)
        file = self.live.pop(path, None)
        self.adds.pop(path, None)
        return file.rows if file else 0
