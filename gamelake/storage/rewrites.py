"""Rewrites: commits that replace files of a table under a lease, while streams append to it.

A lease holder that stalled may continue after another process has taken the lease over, and its commit must not count.
So the new holder first commits its fencing token to the table's log, and a process with a smaller token never commits
after that entry.
Source: Delta Transaction Log Protocol, headings "Delta Log Entries" and "Transaction Identifiers".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from gamelake.model.errors import LeaseLostError
from gamelake.storage.appends import BatchTransaction, table_actions
from gamelake.storage.comments import NO_COMMENTS, Comments
from gamelake.storage.data_files import DataFile, encode_parquet, new_file_name, partition_folder
from gamelake.storage.delta_log import (
    Action,
    FileEntry,
    add_action,
    commit_info,
    contents_of,
    decode_entry,
    encode_entry,
    entry_path,
    now_milliseconds,
    remove_action,
    transaction_action,
)
from gamelake.storage.leases import Lease, LeaseTiming
from gamelake.storage.log_checkpoints import is_log_checkpoint_due
from gamelake.storage.manifests import TableFiles
from gamelake.storage.store import Store
from gamelake.storage.tables import checkpoint_log, open_table

# Maintenance of a table takes some minutes: another process waits for it.
PATIENT_TIMING = LeaseTiming(wait=600)
_LEASE = "gamelake-lease"
_UNIQUE = frozenset({"event_id", "key", "value"})


@contextmanager
def maintenance_lease(store: Store, table: str, timing: LeaseTiming = PATIENT_TIMING) -> Iterator[Lease]:
    """The lease to replace files of a table, until the end of the block; appends need none.

    Raises:
        LeaseHeldError: another process holds it.
        LeaseLostError: another process has taken it over at once.
        TableNotFoundError: there is no table.
    """
    with Lease(store, f"_gamelake/leases/{table}", f"maintenance of {table}", timing) as lease:
        if lease.took_over:
            _fence(store, table, lease)
        yield lease


@contextmanager
def revision_lease(store: Store, timing: LeaseTiming = PATIENT_TIMING) -> Iterator[Lease]:
    """The lease to restore, replay, backfill or erase rows of any table, until the end of the block.

    Two such programs at a time would each read what the other is about to change. Appends and compactions need none.

    Raises:
        LeaseHeldError: another process holds it.
    """
    with Lease(store, "_gamelake/leases/revision", "the revision of rows", timing) as lease:
        yield lease


def commit_rewrite(store: Store, table: str, version: int, actions: Sequence[Action], lease: Lease) -> int | None:
    """Commit a rewrite that was made of a version, after the appends that others have committed since.

    Returns:
        The committed version; None if another commit since `version` did more than append: the rewrite may be wrong.

    Raises:
        LeaseLostError: another process has taken the lease over.
    """
    lease.require()
    # The rewrite may be of a version behind a newer holder's token, which no conflict would show.
    _require_newest(open_table(store.location, table).transaction_version(_LEASE) or 0, lease, table)
    content = encode_entry(actions)
    while not store.put_new(entry_path(table, version + 1), content):
        version += 1
        other = store.get(entry_path(table, version)) or b""
        _require_newest(_token_in(other), lease, table)
        if not only_appends(other):
            return None
    return version + 1


def write_replacement(store: Store, table: str, old: FileEntry, rows: pa.Table) -> DataFile:
    """Write rows as a file that is to replace another one, in the same partition; nothing is committed.

    Args:
        store: the lakehouse.
        table: its path.
        old: the file to replace.
        rows: the table's columns without its partition columns, in Delta types (`gamelake.storage.columns`).
    """
    content, statistics = encode_parquet(rows, _UNIQUE)
    path = new_file_name(partition_folder(old.partition))
    store.put(f"{table}/{path}", content.to_pybytes())
    return DataFile(
        path=path, size=content.size, rows=rows.num_rows, partition=dict(old.partition), statistics=statistics
    )


def discard(store: Store, table: str, files: Iterable[DataFile]) -> None:
    """Delete files whose commit did not succeed."""
    store.delete_all(f"{table}/{file.path}" for file in files)


def only_appends(entry: bytes) -> bool:
    """Whether an entry removes no file, and leaves the protocol as it is."""
    kinds: set[str] = {kind for action in decode_entry(entry) for kind in action}
    return not {"remove", "protocol"} & kinds


def _fence(store: Store, table: str, lease: Lease) -> None:
    """Commit the lease's token, so that the former holder can't commit any more."""
    handle, now = open_table(store.location, table), now_milliseconds()
    _require_newest(handle.transaction_version(_LEASE) or 0, lease, table)
    actions = [commit_info(now, "FENCE", {}), transaction_action(_LEASE, lease.token, now)]
    content, version = encode_entry(actions), handle.version() + 1
    while not store.put_new(entry_path(table, version), content):
        _require_newest(_token_in(store.get(entry_path(table, version)) or b""), lease, table)
        version += 1


def _token_in(entry: bytes) -> int:
    transactions = contents_of(decode_entry(entry), "txn")
    return max((each["version"] for each in transactions if each["appId"] == _LEASE), default=0)


def _require_newest(token: int, lease: Lease, table: str) -> None:
    if token > lease.token:
        raise LeaseLostError(
            f"another process has taken over the maintenance of {table}; this one has committed nothing"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A commit of new files of a table, and of the files that they replace.

    Attributes:
        table_id: the table's own id, empty for a new table.
        properties: the table's new properties, which also sets its columns; None leaves both as they are.
        notes: keys of the commit's commitInfo.
        comments: of the table and its columns, where its columns are set.
    """

    entry: TableFiles
    removed: Sequence[FileEntry]
    transaction: BatchTransaction
    table_id: str = ""
    properties: Mapping[str, str] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    comments: Comments = NO_COMMENTS

    def commit(self, store: Store, version: int) -> bool:
        """Commit as a version of the table; gives False if another writer has committed that version.

        After every 50th version the table's log gets a checkpoint.
        """
        now = now_milliseconds()
        info = commit_info(now, "WRITE", {"mode": "Overwrite"}, notes=self.notes)
        head = [info, transaction_action(self.transaction.app_id, self.transaction.version, now)]
        if self.properties is not None:
            protocol, metadata = table_actions(self.entry, self.properties, now, self.table_id, self.comments)
            head += [protocol, metadata] if version == 0 else [metadata]
        removed = [remove_action(file, now) for file in self.removed]
        added = [add_action(file, now) for file in self.entry.files]
        table = self.entry.table
        if not store.put_new(entry_path(table, version), encode_entry([*head, *removed, *added])):
            return False
        if is_log_checkpoint_due(table, version):
            checkpoint_log(store, table, version)
        return True
