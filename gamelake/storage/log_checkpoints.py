"""Log checkpoints: when a table's log gets one, and one that is written from a copy of the log's end.

A checkpoint names all live files of a version, so that readers replay only the commits after it. delta-rs reads each
commit since the last checkpoint twice when it opens a table, and twice more when it writes a checkpoint. Each of these
reads is a request to an object store; from a local copy of the log's end, it is one for each commit.
Source: Delta Transaction Log Protocol, headings "Checkpoints" and "Last Checkpoint File".
"""

import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from deltalake import DeltaTable

from gamelake.storage.delta_log import LOG_FOLDER, entry_path, following_entries
from gamelake.storage.store import Store

CHECKPOINT_EVERY = 50
_FILES_OF_AN_INTERVAL, _MOST_INTERVALS = 2_000, 10
# Of a copy, which takes memory and space on the local disk.
_MOST_BYTES = 16 * 1024 * 1024


class _LastCheckpoint(msgspec.Struct, rename="camel", frozen=True):
    """The object `_last_checkpoint`, as far as it is read: a writer may leave out all but the version."""

    version: int
    parts: int | None = None
    num_of_add_files: int | None = None


def commits_between_checkpoints(files: int) -> int:
    """How many commits lie between two checkpoints of a table's log: 50, and up to ten times as many for many files.

    A checkpoint names all live files, and costs by them: with ten thousand four times as much as with a hundred.

    Args:
        files: live files of the table.
    """
    return CHECKPOINT_EVERY * min(1 + files // _FILES_OF_AN_INTERVAL, _MOST_INTERVALS)


def is_log_checkpoint_due(table: str, version: int, files: int = 0) -> bool:
    """Whether a table's log gets a checkpoint after a version; see `commits_between_checkpoints`.

    A batch is a commit to each table. The tables' turns differ: 32 checkpoints at a time delayed three batches by half
    a second each.
    """
    return (version + zlib.crc32(table.encode())) % commits_between_checkpoints(files) == 0


def files_of_log_checkpoint(store: Store, table: str) -> int:
    """Live files that the newest checkpoint of a table's log names; 0 without one, or if its writer did not count."""
    last = _last_checkpoint(store, table)
    return 0 if last is None else last.num_of_add_files or 0


def checkpoint_from_copy(store: Store, table: str, version: int) -> int | None:
    """Write a checkpoint of the newest version of a table's log from a local copy of the log's end.

    Args:
        store: the lakehouse.
        table: its path.
        version: a version that was committed; newer ones are found.

    Returns:
        The live files that it names; None if it could not be written: the last checkpoint has several parts or is not
        there under its name, entries after it are missing, or the copy would take more than 16 MiB. The table then has
        to be opened.

    Raises:
        DeltaError: delta-rs can't read the log.
    """
    last = _last_checkpoint(store, table)
    if last is not None and last.version >= version:
        return last.num_of_add_files or 0
    with TemporaryDirectory(prefix="log-checkpoint-") as folder:
        log = Path(folder) / LOG_FOLDER
        log.mkdir()
        if not _copy_end(store, table, last, version, log):
            return None
        DeltaTable(folder).create_checkpoint()
        note = (log / "_last_checkpoint").read_bytes()
        written = msgspec.json.decode(note, type=_LastCheckpoint)
        name = _checkpoint_name(written.version)
        store.put(f"{table}/{LOG_FOLDER}/{name}", (log / name).read_bytes())
        store.put(f"{table}/{LOG_FOLDER}/_last_checkpoint", note)
    return written.num_of_add_files or 0


def _copy_end(store: Store, table: str, last: _LastCheckpoint | None, version: int, log: Path) -> bool:
    """Copy the last checkpoint and the entries after it into a folder; gives whether all are there, and fit."""
    size, start = 0, 0
    if last is not None:
        content = None if last.parts else store.get(f"{table}/{LOG_FOLDER}/{_checkpoint_name(last.version)}")
        if content is None:
            return False
        (log / _checkpoint_name(last.version)).write_bytes(content)
        size, start = len(content), last.version + 1
    for each, content in chain(_entries(store, table, start, version), following_entries(store, table, version)):
        size += len(content or b"")
        if content is None or size > _MOST_BYTES:
            return False
        (log / entry_path(table, each).rsplit("/", 1)[-1]).write_bytes(content)
    return True


def _entries(store: Store, table: str, first: int, last: int) -> Iterator[tuple[int, bytes | None]]:
    versions = range(first, last + 1)
    return zip(versions, store.get_all(entry_path(table, each) for each in versions), strict=True)


def _last_checkpoint(store: Store, table: str) -> _LastCheckpoint | None:
    try:
        return msgspec.json.decode(store.get(f"{table}/{LOG_FOLDER}/_last_checkpoint") or b"", type=_LastCheckpoint)
    except msgspec.MsgspecError:
        # Readers pass over one that is damaged, as if there were none.
        return None


def _checkpoint_name(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"
