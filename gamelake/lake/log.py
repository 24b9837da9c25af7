"""A table's transaction log as it was written, commit by commit."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from gamelake.lake.store import Store


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file that a commit added: by which transaction (`app id/version`, empty if it had none), with how many rows."""

    version: int
    path: str
    transaction: str
    rows: int
    size: int


@dataclass(slots=True)
class TableLog:
    """What the commits of a table say: files appended with new data, and files that are live after the last commit."""

    appended: list[LoggedFile] = field(default_factory=list)
    live: dict[str, LoggedFile] = field(default_factory=dict)

    @property
    def live_rows(self) -> int:
        """Rows of the table's newest version."""
        return sum(file.rows for file in self.live.values())

    @property
    def live_bytes(self) -> int:
        """Bytes of the table's newest version."""
        return sum(file.size for file in self.live.values())

    @classmethod
    def read(cls, store: Store, table: str) -> "TableLog":
        """Read all commits of a table in order."""
        log = cls()
        commits = [path for path in store.paths(f"{table}/_delta_log") if path.endswith(".json")]
        for path in commits:
            name = path.rsplit("/", 1)[-1].removesuffix(".json")
            if name.isdigit():
                log._add(int(name), [json.loads(line) for line in (store.get(path) or b"").splitlines()])
        return log

    def _add(self, version: int, actions: list[dict[str, Any]]) -> None:
        transaction = next((f"{a['txn']['appId']}/{a['txn']['version']}" for a in actions if "txn" in a), "")
        for action in actions:
            if "remove" in action:
                self.live.pop(unquote(action["remove"]["path"]), None)
        for add in _of_kind(actions, "add"):
            rows = int(json.loads(add.get("stats") or "{}").get("numRecords", 0))
            file = LoggedFile(version, unquote(add["path"]), transaction, rows, int(add["size"]))
            self.live[file.path] = file
            if add["dataChange"]:
                self.appended.append(file)


def _of_kind(actions: list[dict[str, Any]], kind: str) -> Iterator[dict[str, Any]]:
    return (action[kind] for action in actions if kind in action)
