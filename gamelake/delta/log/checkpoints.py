"""Log checkpoints: when one is due, and writing one from a local copy of the log's end.

A checkpoint names all live files of a version, so that readers replay only the commits after it. delta-rs reads each
commit since the last checkpoint twice when it opens a table, and twice more when it writes a checkpoint. On an object
store each read is a request; a local copy of the log's end takes only one request for each commit.
Source: Delta Transaction Log Protocol, headings "Checkpoints" and "Last Checkpoint File".
"""

import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from deltalake import DeltaTable

from gamelake.delta.log.codec import (
    LOG_FOLDER,
    contents_of,
    decode_entry,
    entry_path,
    following_entries,
    require_actions,
)
from gamelake.objects.store import Store

CHECKPOINT_EVERY = 50
_FILES_OF_AN_INTERVAL, _MOST_INTERVALS = 2_000, 10
_PORTION = 32
# The limit of a copy's entries, which take memory and space on the local disk. A larger entry is copied alone.
_MOST_BYTES = 16 * 1024 * 1024


class _LastCheckpoint(msgspec.Struct, rename="camel", frozen=True):
    """The fields of the object `_last_checkpoint` that are read: a writer may omit all except the version."""

    version: int
    parts: int | None = None
    num_of_add_files: int | None = None


def commits_between_checkpoints(files: int) -> int:
    """Return the number of commits between two checkpoints of a table's log: 50, up to 500 for tables with many files.

    A checkpoint names all live files, so its cost rises with them: with ten thousand files it is four times that with a
    hundred.

    Args:
        files: the number of the table's live files.
    """
    return CHECKPOINT_EVERY * min(1 + files // _FILES_OF_AN_INTERVAL, _MOST_INTERVALS)


def is_log_checkpoint_due(table: str, version: int, files: int = 0) -> bool:
    """Return True if a table's log gets a checkpoint after a version; see `commits_between_checkpoints`.

    A batch is a commit to each table. Different tables are due at different versions, because 32 checkpoints at the
    same time delayed three batches by 0.5 seconds each.
    """
    return (version + zlib.crc32(table.encode())) % commits_between_checkpoints(files) == 0


def files_of_log_checkpoint(store: Store, table: str) -> int:
    """Return the number of live files in the newest checkpoint of a table's log.

    Returns:
        The number; 0 if there is no checkpoint, or if its writer omitted the number.
    """
    last = _last_checkpoint(store, table)
    return 0 if last is None else last.num_of_add_files or 0


def checkpoint_from_copy(store: Store, table: str, version: int) -> int | None:
    """Write a checkpoint of the newest version of a table's log from a local copy of the log's end.

    If the end has more than 16 MiB, it is copied in portions, each with a checkpoint from which the next one starts.
    delta-rs never reads the store here. If the store returns an entry as an empty object, delta-rs mistakes it for a
    commit without changes, and the checkpoint would omit that entry's files forever.

    Args:
        store: the lakehouse.
        table: the table's path.
        version: a version that was committed. The checkpoint is of the newest version.

    Returns:
        The number of live files that it names. None if no checkpoint could be written, because the last checkpoint has
        several parts or is missing, or because entries after it are missing. The caller must then open the table.

    Raises:
        DeltaError: delta-rs can't read the log.
        ValueError: an entry is empty.
    """
    last = _last_checkpoint(store, table)
    while last is None or last.version < version:
        last = _next_checkpoint(store, table, last, version)
        if last is None:
            return None
    return last.num_of_add_files or 0


def _next_checkpoint(store: Store, table: str, last: _LastCheckpoint | None, version: int) -> _LastCheckpoint | None:
    """Write a checkpoint from a copy of the last one and a portion of the entries after it."""
    with TemporaryDirectory(prefix="log-checkpoint-") as folder:
        log = Path(folder) / LOG_FOLDER
        log.mkdir()
        if not _copy_portion(store, table, last, version, log):
            return None
        DeltaTable(folder).create_checkpoint()
        note = (log / "_last_checkpoint").read_bytes()
        written = msgspec.json.decode(note, type=_LastCheckpoint)
        name = _checkpoint_name(written.version)
        store.put(f"{table}/{LOG_FOLDER}/{name}", (log / name).read_bytes())
        store.put(f"{table}/{LOG_FOLDER}/_last_checkpoint", note)
    return written


def newest_transaction(store: Store, table: str, handle: DeltaTable, app_id: str) -> int | None:
    """Find the last transaction version of an application in the entries since the newest log checkpoint.

    For older transactions, delta-rs is asked. It is not asked about these entries: if the store returns an entry as an
    empty object, delta-rs mistakes it for a commit without changes, and the entry's batch would be committed again.
    The newest entry is usually enough.

    Args:
        store: the lakehouse.
        table: the table's path.
        handle: the table, open at the version to search from.
        app_id: the application's id.

    Returns:
        The version, None if the table has no transaction of the application.

    Raises:
        ValueError: an entry is empty, damaged or missing.
    """
    for entry in _back_to_checkpoint(store, table, handle.version()):
        found = _transaction_in(entry, app_id)
        if found is not None:
            return found
    return handle.transaction_version(app_id)


def _back_to_checkpoint(store: Store, table: str, version: int) -> Iterator[bytes]:
    """Yield the entries from a version down to the newest log checkpoint; read older ones in portions."""
    newest = store.get(entry_path(table, version))
    if newest is None:
        # The version is the log checkpoint's, and log cleanup has deleted its entry.
        return
    yield newest
    last = _last_checkpoint(store, table)
    first = 0 if last is None else last.version + 1
    for end in range(version - 1, first - 1, -_PORTION):
        for number, entry in reversed(list(_entries(store, table, max(first, end - _PORTION + 1), end))):
            if entry is not None:
                yield entry
            elif last is not None:
                raise ValueError(f"the entry of version {number} is missing")
            else:
                return


def _transaction_in(entry: bytes, app_id: str) -> int | None:
    transactions = contents_of(decode_entry(entry), "txn")
    return max((int(each["version"]) for each in transactions if each["appId"] == app_id), default=None)


def _copy_portion(store: Store, table: str, last: _LastCheckpoint | None, version: int, log: Path) -> bool:
    """Copy the last checkpoint, and the entries after it that fit, into a folder; return False if one is missing."""
    size, start = 0, 0
    if last is not None:
        content = None if last.parts else store.get(f"{table}/{LOG_FOLDER}/{_checkpoint_name(last.version)}")
        if content is None:
            return False
        (log / _checkpoint_name(last.version)).write_bytes(content)
        start = last.version + 1
    for each, content in chain(_entries(store, table, start, version), following_entries(store, table, version)):
        if content is None:
            return False
        if size and size + len(content) > _MOST_BYTES:
            return True
        size += len(content)
        require_actions(content)
        (log / entry_path(table, each).rsplit("/", 1)[-1]).write_bytes(content)
    return True


def _entries(store: Store, table: str, first: int, last: int) -> Iterator[tuple[int, bytes | None]]:
    versions = range(first, last + 1)
    return zip(versions, store.get_all(entry_path(table, each) for each in versions), strict=True)


def _last_checkpoint(store: Store, table: str) -> _LastCheckpoint | None:
    try:
        return msgspec.json.decode(store.get(f"{table}/{LOG_FOLDER}/_last_checkpoint") or b"", type=_LastCheckpoint)
    except msgspec.MsgspecError:
        # Readers ignore a damaged one.
        return None


def _checkpoint_name(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"
