"""Sets a table back to an older version by one more commit: files that went since come back, those that came go.

The streams go on meanwhile. What they append after the plan was made stays, and a batch that was committed before is
not committed again, since a table never forgets which batches it has taken.
Source: Delta Transaction Log Protocol, headings "Add File and Remove File" and "Transaction Identifiers".
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import msgspec

from gamelake.errors import TransientError
from gamelake.lake.actions import ENGINE, now_milliseconds, remove_action
from gamelake.lake.file_entries import FileEntry
from gamelake.lake.leases import Lease
from gamelake.lake.rewrites import commit_behind
from gamelake.lake.store import Store
from gamelake.maintenance.table_history import Action, RestoreError, TableHistory


class Restored(msgspec.Struct, frozen=True, kw_only=True):
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

    def outlook(self) -> Restored:
        """What would change.

        Raises:
            RestoreError: files that the version needs are gone.
        """
        return self._outlook(*self.changes())

    def commit(self, lease: Lease) -> Restored:
        """Change it.

        Raises:
            RestoreError: files that the version needs are gone.
            TransientError: another process replaced files meanwhile.
        """
        back, out = self.changes()
        outlook = self._outlook(back, out)
        if not back and not out:
            return outlook
        actions = self._actions(back, out)
        version = commit_behind(self.store, self.history.table, outlook.from_version, actions, lease)
        if version is None:
            raise TransientError(f"{self.history.table}: files were replaced meanwhile; look again, and restore again")
        return msgspec.structs.replace(outlook, version=version)

    def changes(self) -> tuple[list[Action], list[Action]]:
        """The add actions of the files that come back, and of those that go."""
        then, now = self.history.live_at(self.version), self.history.live_at(self.history.newest)
        return [then[path] for path in then if path not in now], [now[path] for path in now if path not in then]

    def _outlook(self, back: Sequence[Action], out: Sequence[Action]) -> Restored:
        self.require_there(back)
        return Restored(
            table=self.history.table,
            from_version=self.history.newest,
            to_version=self.version,
            rows_out=sum(map(_rows, out)),
            rows_back=sum(map(_rows, back)),
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
        info = {
            "timestamp": now,
            "operation": "RESTORE",
            "operationParameters": {"version": str(self.version)},
            "operationMetrics": {"numRestoredFiles": str(len(back)), "numRemovedFiles": str(len(out))},
            "isBlindAppend": False,
            "engineInfo": ENGINE,
        }
        removes = [remove_action(entry_of(add), now) for add in out]
        return [{"commitInfo": info}, *removes, *({"add": {**add, "dataChange": True}} for add in back)]


def entry_of(add: Action) -> FileEntry:
    """The file that an add action names."""
    return FileEntry(add["path"], add["size"], add["partitionValues"])


def _rows(add: Action) -> int:
    return int(json.loads(add.get("stats") or "{}").get("numRecords", 0))
