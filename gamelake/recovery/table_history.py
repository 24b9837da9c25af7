"""The history of a table: its commits, the files of each version, and its batches.

Source: Delta Transaction Log Protocol, headings "Delta Log Entries", "Add File and Remove File".
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from urllib.parse import unquote

from gamelake.delta.log.codec import (
    Action,
    commit_info_of,
    contents_of,
    decode_entry,
    entry_path,
    following_entries,
    transactions_of,
)
from gamelake.delta.log.history_checkpoints import read_log_checkpoint
from gamelake.model.errors import StartupError
from gamelake.objects.store import Store

# The version before the first one: a table without rows.
NONE_YET = -1


class RestoreError(StartupError):
    """A table can't be restored to the requested version."""


@dataclass(slots=True)
class _Commit:
    """The log entry of a version.

    Attributes:
        version: the version.
        at: time of the commit.
        transaction: the batch, as `application/batch`; empty if the commit has none.
        adds: its add actions.
        removes: the paths that it removes.
    """

    version: int
    at: datetime
    transaction: str
    adds: list[Action]
    removes: list[str]


@dataclass(slots=True)
class TableHistory:
    """The commits of a table.

    Attributes:
        store: the store of the lakehouse.
        table: path of the table.
        commits: the commits in the order of their versions: all, or one for the log checkpoint and those after it.
    """

    store: Store
    table: str
    commits: list[_Commit] = field(default_factory=list)

    @classmethod
    def read(cls, store: Store, table: str) -> "TableHistory":
        """Read a table's log as far back as it goes.

        Raises:
            RestoreError: the table does not exist, or has neither its first entry nor a log checkpoint.
        """
        history, version = cls(store, table), 0
        checkpoint = read_log_checkpoint(store, table) if store.get(entry_path(table, 0)) is None else None
        if checkpoint is not None:
            version, at = checkpoint.version + 1, datetime.fromtimestamp(checkpoint.at / 1000, UTC)
            # As a commit that adds all files of its version.
            history.commits.append(_Commit(checkpoint.version, at, "", list(checkpoint.adds), []))
        for each, entry in following_entries(store, table, version - 1):
            history.commits.append(_commit(each, decode_entry(entry)))
        if not history.commits:
            raise RestoreError(f"there is no table {table} whose log starts at version 0; nothing was changed")
        return history

    @property
    def first(self) -> int:
        """The oldest known version."""
        return self.commits[0].version

    @property
    def newest(self) -> int:
        """The newest version."""
        return self.commits[-1].version

    def at_version(self, version: int) -> int:
        """Check a version, and return it.

        Raises:
            RestoreError: the table does not have the version.
        """
        if not self.first <= version <= self.newest:
            raise RestoreError(f"{self.table} has versions {self.first} to {self.newest}, not {version}")
        return version

    def at_time(self, moment: datetime) -> int:
        """Return the version that was current at a moment: the last one before the first later commit.

        Clocks of writers differ, so a commit may have an earlier time than its predecessor. As in Spark, it then counts
        as committed at its predecessor's time, so that a restore keeps no commit that was made after the moment.

        Raises:
            RestoreError: the table did not exist at the moment.
        """
        before = [commit.version for commit in takewhile(lambda commit: commit.at <= moment, self.commits)]
        if not before:
            first = self.commits[0].at
            what = "is known since" if self.first else "was created at"
            raise RestoreError(f"{self.table} {what} {first:%Y-%m-%d %H:%M:%S}, after {moment:%Y-%m-%d %H:%M:%S}")
        return before[-1]

    def at_time_or_none_yet(self, moment: datetime) -> int:
        """Return the version of `at_time`, or NONE_YET if the table was created later.

        Raises:
            RestoreError: the history does not reach back so far.
        """
        return NONE_YET if not self.first and moment < self.commits[0].at else self.at_time(moment)

    def before_batch(self, batch: int, applications: Collection[str]) -> int:
        """Return the version before the commit of a stream's batch; NONE_YET if that commit created the table.

        Args:
            batch: the batch id, which other writers' batches may have too.
            applications: the application ids of the stream's transactions.

        Raises:
            RestoreError: the batch was never committed, or the history does not reach back so far.
        """
        named = {f"{application}/{batch}" for application in applications}
        took = [commit.version for commit in self.commits if commit.transaction in named]
        if not took:
            raise RestoreError(f"{self.table} has no batch {batch}")
        return NONE_YET if not took[-1] else self.at_version(took[-1] - 1)

    def batches_after(self, version: int) -> tuple[str, ...]:
        """Return the batches that later versions committed, as `application/batch`, in the order of the versions."""
        return tuple(each.transaction for each in self.commits if each.version > version and each.transaction)

    def live_at(self, version: int) -> Mapping[str, Action]:
        """Return the add actions of the live files of a version, by path."""
        live: dict[str, Action] = {}
        for commit in (each for each in self.commits if each.version <= version):
            for path in commit.removes:
                live.pop(path, None)
            live |= {add["path"]: add for add in commit.adds}
        return live

    def missing(self, adds: Sequence[Action]) -> int:
        """Count the files of add actions that no longer exist."""
        there = set(self.store.paths(self.table)) if adds else set()
        return sum(f"{self.table}/{unquote(add['path'])}" not in there for add in adds)


def _commit(version: int, actions: list[Action]) -> _Commit:
    return _Commit(
        version=version,
        at=datetime.fromtimestamp(commit_info_of(actions).get("timestamp", 0) / 1000, UTC),
        transaction=next(iter(transactions_of(actions)), ""),
        adds=list(contents_of(actions, "add")),
        removes=[remove["path"] for remove in contents_of(actions, "remove")],
    )
