"""Checkpoints that replace a table's oldest log entries once these are deleted.

A checkpoint is written before the entries that it replaces are deleted; the newest one is valid. It has the add action
of each live file, so that a restore and the reconciliation need no older entry.

There are two. One has the history before the retention; a restore begins with it. The other one is up to a day old:
readers of the newest version alone read the entries of one day, however long the retention is.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from gamelake.delta.log.codec import entry_path
from gamelake.model.naming import Horizon
from gamelake.objects.records import Encoding, NewestRecord, Records
from gamelake.objects.store import Store

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file that a commit added.

    Attributes:
        version: the version of the commit.
        path: under the table's folder.
        transaction: `application/version`, empty if the commit had none.
        rows: the number of rows in the file's statistics, 0 without statistics.
        size: in bytes.
    """

    version: int
    path: str
    transaction: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class LoggedErasure:
    """A commit of an erasure.

    Attributes:
        version: the version of the commit.
        run: the erasure's run.
        rows: the number of rows that it removed.
        files: the number of files that it removed or replaced.
    """

    version: int
    run: str
    rows: int
    files: int


class LogCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A table at a version, and the history up to it that a restore and the reconciliation need.

    Attributes:
        table: the table's path.
        version: the version that the checkpoint has.
        at: when the version was committed, in milliseconds since 1970.
        entry: the digest of the version's log entry; a table that was dropped and created again has another one.
        adds: the add actions of the live files, unchanged from the log; the same files as `live`.
        live: the files of the version.
        appended: files with new data whose batches have no manifest checkpoint.
        removed: when each removed file was removed, in milliseconds since 1970, by path under the table's folder.
        erasures: the commits of erasures, in order.
        schema: see `TableLog`.
        upgrade: see `TableLog`.
    """

    table: str
    version: int
    at: int
    entry: str
    adds: tuple[dict[str, Any], ...]
    live: tuple[LoggedFile, ...]
    appended: tuple[LoggedFile, ...]
    removed: dict[str, int]
    erasures: tuple[LoggedErasure, ...]
    schema: str
    upgrade: tuple[int, dict[str, Any]] | None = None


def read_log_checkpoint(store: Store, table: str, horizon: Horizon = Horizon.RETENTION) -> LogCheckpoint | None:
    """Read the checkpoint of a table's log; return None if there is none, or if the table was created again since."""
    checkpoint = _records(store, horizon, table, LogCheckpoint).read()
    return checkpoint if checkpoint is not None and _is_of(store, checkpoint) else None


def read_newest_log_checkpoint(store: Store, table: str) -> LogCheckpoint | None:
    """Read the newer of the checkpoints of both horizons, for readers of the newest version; None if there is none."""
    daily = read_log_checkpoint(store, table, Horizon.DAY)
    # After a cleanup with a shorter retention the other checkpoint may be newer. It exists at least until the next run.
    former = _records(store, Horizon.RETENTION, table, LogCheckpoint).number()
    return daily if daily is not None and daily.version >= former else read_log_checkpoint(store, table)


class LogRemovals(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a table's log checkpoint that vacuum reads.

    Attributes:
        table: see `LogCheckpoint`.
        version: see `LogCheckpoint`.
        entry: see `LogCheckpoint`.
        removed: see `LogCheckpoint`.
    """

    table: str
    version: int
    entry: str
    removed: dict[str, int]


def read_log_removals(store: Store, table: str) -> LogRemovals | None:
    """Read the newest log checkpoint without its live and appended files, which take most of the memory.

    Returns:
        The checkpoint, None if there is none, or if the table was created again since.
    """
    found = (_records(store, horizon, table, LogRemovals).read() for horizon in Horizon)
    usable = [each for each in found if each is not None and _is_of(store, each)]
    return max(usable, key=lambda each: each.version, default=None)


def digest_of(entry: bytes) -> str:
    """Return the digest of a log entry: SHA-256 in hexadecimal digits."""
    return hashlib.sha256(entry).hexdigest()


def _is_of(store: Store, checkpoint: LogCheckpoint | LogRemovals) -> bool:
    entry = store.get(entry_path(checkpoint.table, checkpoint.version))
    if entry is not None:
        return digest_of(entry) == checkpoint.entry
    # Another log cleanup, such as Spark's, may have deleted entries beyond the checkpoint.
    return store.get(entry_path(checkpoint.table, 0)) is None


def write_log_checkpoint(store: Store, checkpoint: LogCheckpoint, horizon: Horizon = Horizon.RETENTION) -> None:
    """Write the checkpoint of a table's log, then delete the former ones of its horizon."""
    _records(store, horizon, checkpoint.table, LogCheckpoint).replace(checkpoint.version, checkpoint)


def _records(store: Store, horizon: Horizon, table: str, kind: type[T]) -> NewestRecord[T]:
    return NewestRecord(Records(store, f"{horizon}/tables/{table}", kind, Encoding.ZSTD))
