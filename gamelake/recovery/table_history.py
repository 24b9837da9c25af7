"""The history of a table: its commits, which files each version had, and which batches it took.

Source: Delta Transaction Log Protocol, headings "Delta Log Entries", "Add File and Remove File".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from gamelake.model.errors import StartupError
from gamelake.storage.delta_log import (
    Action,
    commit_info_of,
    contents_of,
    decode_entry,
    entry_path,
    following_entries,
    transactions_of,
)
from gamelake.storage.manifest_checkpoints import LogCheckpoint, read_log_checkpoint
from gamelake.storage.store import Store

# Before its first version a table has no rows.
NONE_YET = -1


class RestoreError(StartupError):
    """A table can't be set back to where it is asked to."""


@dataclass(slots=True)
class _Commit:
    """A version of a table as its log entry has it."""

    version: int
    at: datetime
    transaction: str
    adds: list[Action]
    removes: list[str]


@dataclass(slots=True)
class TableHistory:
    """The commits of a table, in order: all of them, or those since the version that a statement stands for."""

    table: str
    commits: list[_Commit] = field(default_factory=list)

    @classmethod
    def read(cls, store: Store, table: str) -> "TableHistory":
        """Read a table's log as far back as it goes.

        Raises:
            RestoreError: there is no such table, or neither its first version nor a statement in its place.
        """
        history, version = cls(table), 0
        statement = read_log_checkpoint(store, table) if store.get(entry_path(table, 0)) is None else None
        if statement is not None:
            history.commits.append(_stated(statement))
            version = statement.version + 1
        for each, entry in following_entries(store, table, version - 1):
            history.commits.append(_commit(each, decode_entry(entry)))
        if not history.commits:
            raise RestoreError(f"there is no table {table} whose log begins with version 0; nothing was changed")
        return history

    @property
    def first(self) -> int:
        """The oldest version that is known."""
        return self.commits[0].version

    @property
    def newest(self) -> int:
        """The newest version."""
        return self.commits[-1].version

    def at_version(self, version: int) -> int:
        """A version, if there is one.

        Raises:
            RestoreError: there is none.
        """
        if not self.first <= version <= self.newest:
            raise RestoreError(f"{self.table} has versions {self.first} to {self.newest}, not {version}")
        return version

    def at_time(self, moment: datetime) -> int:
        """The version that was the newest at a moment.

        Raises:
            RestoreError: there was no table then.
        """
        before = [commit.version for commit in self.commits if commit.at <= moment]
        if not before:
            first = self.commits[0].at
            what = "is known since" if self.first else "was made at"
            raise RestoreError(f"{self.table} {what} {first:%Y-%m-%d %H:%M:%S}, after {moment:%Y-%m-%d %H:%M:%S}")
        return before[-1]

    def at_time_or_none_yet(self, moment: datetime) -> int:
        """The same, but NONE_YET where the table was made later.

        Raises:
            RestoreError: what it was then is not known any more.
        """
        return NONE_YET if not self.first and moment < self.commits[0].at else self.at_time(moment)

    def before_batch(self, batch: int) -> int:
        """The version before the one that took a batch; NONE_YET where that one made the table.

        Raises:
            RestoreError: no version took it, or what was before is not known any more.
        """
        took = [commit.version for commit in self.commits if commit.transaction.endswith(f"/{batch}")]
        if not took:
            raise RestoreError(f"{self.table} has taken no batch {batch}")
        return NONE_YET if not took[-1] else self.at_version(took[-1] - 1)

    def batches_after(self, version: int) -> tuple[str, ...]:
        """The batches that later versions took, as `application/batch`."""
        return tuple(each.transaction for each in self.commits if each.version > version and each.transaction)

    def live_at(self, version: int) -> Mapping[str, Action]:
        """The add actions of a version's files, by path."""
        live: dict[str, Action] = {}
        for commit in (each for each in self.commits if each.version <= version):
            for path in commit.removes:
                live.pop(path, None)
            live |= {add["path"]: add for add in commit.adds}
        return live


def _stated(statement: LogCheckpoint) -> _Commit:
    """A statement as a commit that made the table as it was then."""
    at = datetime.fromtimestamp(statement.at / 1000, UTC)
    return _Commit(version=statement.version, at=at, transaction="", adds=list(statement.adds), removes=[])


def _commit(version: int, actions: list[Action]) -> _Commit:
    return _Commit(
        version=version,
        at=datetime.fromtimestamp(commit_info_of(actions).get("timestamp", 0) / 1000, UTC),
        transaction=next(iter(transactions_of(actions)), ""),
        adds=list(contents_of(actions, "add")),
        removes=[remove["path"] for remove in contents_of(actions, "remove")],
    )
