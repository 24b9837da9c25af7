"""What a table's oldest log entries, and a stream's oldest manifests, came to: what stands for them once they are gone.

A statement is written whole before anything goes that it stands for; the newest one counts. A table's names each live
file as the log did, so that a restore and the books need nothing older.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from gamelake.storage.delta_log import LOG_FOLDER
from gamelake.storage.manifests import OffsetRange
from gamelake.storage.store import Store

_FOLDER = "_gamelake/statements"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file that a commit added: by which transaction (`app id/version`, empty if it had none), with how many rows."""

    version: int
    path: str
    transaction: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class LoggedErasure:
    """A commit that took rows of people out of a table: for which run, and what it took."""

    version: int
    run: str
    rows: int
    files: int


class LogCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A table at a version, and what became of it up to there.

    Attributes:
        at: when the version was committed, in milliseconds since 1970.
        entry: the digest of the version's own entry, by which a table that was made again is told from this one.
        adds: the add actions of its files, as the log had them; `live` are the same files.
        appended: files with new data whose batches' manifests are still there, or never were.
        removed: files that a commit took out, and when.
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


class TopicOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets of one partition of a topic that were taken, without a gap."""

    topic: str
    topic_id: str
    taken: OffsetRange


class ManifestCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The batches of a stream up to one of them, each of which stood in all of its tables when it was folded.

    Attributes:
        through: the last of them.
        applications: by application id, its last batch among them.
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


def read_log_checkpoint(store: Store, table: str) -> LogCheckpoint | None:
    """The newest statement of a table, None if its log is all there, or the table was made again since."""
    statement = _newest(store, f"{_FOLDER}/tables/{table}", LogCheckpoint)
    return statement if statement is not None and _is_of(store, statement) else None


def digest_of(entry: bytes) -> str:
    """The digest of a log entry."""
    return hashlib.sha256(entry).hexdigest()


def _is_of(store: Store, statement: LogCheckpoint) -> bool:
    folder = f"{statement.table}/{LOG_FOLDER}"
    entry = store.get(f"{folder}/{statement.version:020d}.json")
    if entry is not None:
        return digest_of(entry) == statement.entry
    # Whoever else cleans up logs, as Spark does, may have gone further than the statement.
    return store.get(f"{folder}/{0:020d}.json") is None


def read_manifest_checkpoint(store: Store, stream: str) -> ManifestCheckpoint | None:
    """The newest statement of a stream, None if its manifests are all there."""
    return _newest(store, f"{_FOLDER}/streams/{stream}", ManifestCheckpoint)


def write_log_checkpoint(store: Store, statement: LogCheckpoint) -> None:
    """Have a statement stand for a table from now on; the ones before it go."""
    _keep(store, f"{_FOLDER}/tables/{statement.table}", statement.version, statement)


def write_manifest_checkpoint(store: Store, statement: ManifestCheckpoint) -> None:
    """Have a statement stand for a stream from now on; the ones before it go."""
    _keep(store, f"{_FOLDER}/streams/{statement.stream}", statement.through, statement)


def _newest(store: Store, folder: str, kind: type[T]) -> T | None:
    for path in reversed(store.paths(folder)):
        packed = store.get(path)
        if packed is not None:
            return msgspec.json.decode(pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read(), type=kind)
    return None


def _keep(store: Store, folder: str, number: int, statement: msgspec.Struct) -> None:
    former, path = store.paths(folder), f"{folder}/{number:020d}.json.zst"
    store.put(path, bytes(pa.compress(msgspec.json.encode(statement), "zstd", asbytes=True)))
    for each in former:
        if each != path:
            store.delete(each)
