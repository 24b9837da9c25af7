"""A table's transaction log as it was written, commit by commit."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from gamelake.storage.listing import LOG_FOLDER
from gamelake.storage.manifest_checkpoints import LoggedErasure, LoggedFile, TableStatement, table_statement
from gamelake.storage.store import Store

# What the entry of an erasure says of itself: the run that it belongs to.
ERASURE_NOTE = "gamelake.erasure"
# What the entry of a batch says of itself: `application/batch`.
BATCH_NOTE = "gamelake.batch"
# What the entry of a rewrite says of itself: rows of records that were decoded once more, in the place of as many.
REBUILT_NOTE = "gamelake.rebuilt"
# How the application of a replay begins; its rows are as old as the records that it reads.
REPLAY = "replay-"


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
    adds: dict[str, dict[str, Any]] = field(default_factory=dict)
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
        statement = table_statement(store, table)
        log = cls.of(statement) if statement else cls()
        for version, entry in entries_after(store, table, log.folded):
            log.take(version, [json.loads(line) for line in entry.splitlines()])
        return log

    @classmethod
    def of(cls, statement: TableStatement) -> "TableLog":
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

    def take(self, version: int, actions: list[dict[str, Any]]) -> None:
        """Take in the next commit."""
        transaction = next((f"{a['txn']['appId']}/{a['txn']['version']}" for a in actions if "txn" in a), "")
        info: dict[str, Any] = next(_of_kind(actions, "commitInfo"), {})
        run = info.get(ERASURE_NOTE, "")
        gone = [self._remove(remove) for remove in _of_kind(actions, "remove")]
        back = 0
        for add in _of_kind(actions, "add"):
            rows = int(json.loads(add.get("stats") or "{}").get("numRecords", 0))
            file = LoggedFile(version, unquote(add["path"]), transaction, rows, int(add["size"]))
            self.live[file.path], self.adds[file.path] = file, add
            # A restore brings a file back that was added before: no name is ever given twice.
            is_back = self.removed.pop(file.path, None) is not None
            back += rows
            if add["dataChange"] and not run and not is_back and REBUILT_NOTE not in info:
                self.appended.append(file)
        if run:
            self.erasures.append(LoggedErasure(version, run, sum(gone) - back, len(gone)))

    def _remove(self, remove: dict[str, Any]) -> int:
        """Take a file out; gives its rows."""
        path = unquote(remove["path"])
        self.removed[path] = int(remove.get("deletionTimestamp") or 0)
        file = self.live.pop(path, None)
        self.adds.pop(path, None)
        return file.rows if file else 0


def entries_after(store: Store, table: str, version: int) -> Iterator[tuple[int, bytes]]:
    """The entries of a table's log after a version, in their order."""
    names = ((path, path.rsplit("/", 1)[-1].removesuffix(".json")) for path in store.paths(f"{table}/{LOG_FOLDER}"))
    found = [(int(name), path) for path, name in names if path.endswith(".json") and name.isdigit()]
    wanted = [(number, path) for number, path in found if number > version]
    contents = store.get_all([path for _, path in wanted])
    return ((number, content or b"") for (number, _), content in zip(wanted, contents, strict=True))


def is_revision(info: Mapping[str, Any]) -> bool:
    """Whether a commit, by its commitInfo, set rows back, brought some back, or put them right."""
    return (
        info.get("operation") == "RESTORE" or REBUILT_NOTE in info or str(info.get(BATCH_NOTE, "")).startswith(REPLAY)
    )


def _of_kind(actions: list[dict[str, Any]], kind: str) -> Iterator[dict[str, Any]]:
    return (action[kind] for action in actions if kind in action)
