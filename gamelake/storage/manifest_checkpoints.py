"""Checkpoints that replace a table's oldest log entries and a stream's oldest manifests once these are deleted.

A checkpoint is written before anything is deleted that it replaces; the newest one counts. That of a table has each
live file as the log had it, so that a restore and the reconciliation need nothing older.

There are two of each: one of the history before the retention, with which a restore begins, and one that is up to a day
old, so that what needs the newest version alone reads the entries of a day, however long the retention is.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from gamelake.model.naming import Horizon
from gamelake.storage.delta_log import LOG_FOLDER
from gamelake.storage.manifests import OffsetRange
from gamelake.storage.store import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file that a commit added.

    Attributes:
        version: of the commit.
        path: under the table's folder.
        transaction: `application/version`, empty if the commit had none.
        rows: by the file's statistics.
        size: in bytes.
    """

    version: int
    path: str
    transaction: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class LoggedErasure:
    """A commit of an erasure: its run, and the rows and files that it removed."""

    version: int
    run: str
    rows: int
    files: int


class LogCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A table at a version, and the history up to it that a restore and the reconciliation need.

    Attributes:
        at: when the version was committed, in milliseconds since 1970.
        entry: the digest of the version's log entry: a table that was dropped and made again has another one.
        adds: the add actions of its files, as the log had them; `live` are the same files.
        appended: files with new data whose batches have no manifest checkpoint.
        removed: by path, when a file was removed, in milliseconds since 1970.
        schema: see `TableLog`; older checkpoints have none.
        upgrade: see `TableLog`; older checkpoints have none.
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
    schema: str = ""
    upgrade: tuple[int, dict[str, Any]] | None = None


class TopicOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets of one partition of a topic that batches read, without a gap."""

    topic: str
    topic_id: str
    taken: OffsetRange


class ManifestCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of a stream's batches up to one of them; all of their commits were found in the tables' logs.

    Attributes:
        through: the last batch.
        dead_letters: by reason.
        duplicates: by game.
        applications: the last batch of each application id.
        quarantined: by rule.
        dropped: by rule.
    """

    stream: str
    through: int
    batches: int
    records: int
    silver_rows: int
    dead_letters: dict[str, int]
    duplicates: dict[str, int]
    offsets: tuple[TopicOffsets, ...]
    applications: dict[str, int]
    quarantined: dict[str, int] = {}
    dropped: dict[str, int] = {}

    def covers(self, transaction: str) -> bool:
        """Whether a transaction, as `application/batch`, is of one of these batches."""
        application, _, batch = transaction.rpartition("/")
        return application in self.applications and int(batch) <= self.applications[application]


def read_log_checkpoint(store: Store, table: str, horizon: Horizon = Horizon.RETENTION) -> LogCheckpoint | None:
    """The checkpoint of a table's log, None if there is none, or the table was made again since."""
    checkpoint = _newest(store, f"{horizon}/tables/{table}", LogCheckpoint)
    return checkpoint if checkpoint is not None and _is_of(store, checkpoint) else None


def read_newest_log_checkpoint(store: Store, table: str) -> LogCheckpoint | None:
    """`read_log_checkpoint` of either horizon, for readers of the newest version."""
    daily = read_log_checkpoint(store, table, Horizon.DAY)
    # After a cleanup with a shorter retention the other one may be newer; it is then not deleted before the next run.
    former = _newest_number(store, f"{Horizon.RETENTION}/tables/{table}")
    return daily if daily is not None and daily.version >= former else read_log_checkpoint(store, table)


class LogRemovals(msgspec.Struct, frozen=True, kw_only=True):
    """Of a table's log checkpoint, what vacuum reads; see `LogCheckpoint`."""

    table: str
    version: int
    entry: str
    removed: dict[str, int]


def read_log_removals(store: Store, table: str) -> LogRemovals | None:
    """`read_newest_log_checkpoint` without the live and appended files, which take most of its memory."""
    folders = (f"{horizon}/tables/{table}" for horizon in Horizon)
    found = (_newest(store, folder, LogRemovals) for folder in folders)
    usable = [each for each in found if each is not None and _is_of(store, each)]
    return max(usable, key=lambda each: each.version, default=None)


def digest_of(entry: bytes) -> str:
    """The digest of a log entry."""
    return hashlib.sha256(entry).hexdigest()


def _is_of(store: Store, checkpoint: LogCheckpoint | LogRemovals) -> bool:
    folder = f"{checkpoint.table}/{LOG_FOLDER}"
    entry = store.get(f"{folder}/{checkpoint.version:020d}.json")
    if entry is not None:
        return digest_of(entry) == checkpoint.entry
    # Another log cleanup, such as Spark's, may have deleted entries beyond the checkpoint.
    return store.get(f"{folder}/{0:020d}.json") is None


def read_manifest_checkpoint(
    store: Store, stream: str, horizon: Horizon = Horizon.RETENTION
) -> ManifestCheckpoint | None:
    """The checkpoint of a stream's manifests, None if there is none."""
    return _newest(store, f"{horizon}/streams/{stream}", ManifestCheckpoint)


def read_newest_manifest_checkpoint(store: Store, stream: str) -> ManifestCheckpoint | None:
    """`read_manifest_checkpoint` of either horizon, the newer one."""
    found = (read_manifest_checkpoint(store, stream, horizon) for horizon in Horizon)
    return max((each for each in found if each is not None), key=lambda each: each.through, default=None)


def write_log_checkpoint(store: Store, checkpoint: LogCheckpoint, horizon: Horizon = Horizon.RETENTION) -> None:
    """Write the checkpoint of a table's log, and delete those before it."""
    _keep(store, f"{horizon}/tables/{checkpoint.table}", checkpoint.version, checkpoint)


def write_manifest_checkpoint(
    store: Store, checkpoint: ManifestCheckpoint, horizon: Horizon = Horizon.RETENTION
) -> None:
    """Write the checkpoint of a stream's manifests, and delete those before it."""
    _keep(store, f"{horizon}/streams/{checkpoint.stream}", checkpoint.through, checkpoint)


def _newest(store: Store, folder: str, kind: type[T]) -> T | None:
    for path in reversed(store.paths(folder)):
        content = store.get(path)
        if content is not None:
            return msgspec.json.decode(pa.CompressedInputStream(pa.BufferReader(content), "zstd").read(), type=kind)
    return None


def _newest_number(store: Store, folder: str) -> int:
    return max((int(path.rsplit("/", 1)[-1].partition(".")[0]) for path in store.paths(folder)), default=-1)


def _keep(store: Store, folder: str, number: int, checkpoint: msgspec.Struct) -> None:
    former, path = store.paths(folder), f"{folder}/{number:020d}.json.zst"
    store.put(path, bytes(pa.compress(msgspec.json.encode(checkpoint), "zstd", asbytes=True)))
    store.delete_all(each for each in former if each != path)
