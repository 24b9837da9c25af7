"""Commits that replace files of a table while others append to it: behind what was only appended, under a lease.

A holder that stalled may come back after another has taken its lease over. Its commit must not count: the one that took
over puts its token into the table's log, and a commit with a smaller one is never put behind that entry.
Source: Delta Transaction Log Protocol, headings "Delta Log Entries" and "Transaction Identifiers".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote

import pyarrow as pa

from gamelake.model.errors import LeaseLostError
from gamelake.storage.appends import BatchTransaction, table_actions
from gamelake.storage.comments import NO_COMMENTS, Comments
from gamelake.storage.data_files import DataFile, encode_parquet, new_file_name
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
from gamelake.storage.manifests import TableFiles
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table

# Whoever does upkeep of a table for some minutes is waited for.
PATIENT_TIMING = LeaseTiming(wait=600)
_LEASE = "gamelake-lease"
_UNIQUE = frozenset({"event_id", "key", "value"})


@contextmanager
def maintenance_lease(store: Store, table: str, pace: LeaseTiming = PATIENT_TIMING) -> Iterator[Lease]:
    """The right to replace files of a table, until the end of the block; appends need none.

    Raises:
        LeaseHeldError: another process holds it.
        LeaseLostError: another process has taken it over at once.
        TableNotFoundError: there is no table.
    """
    with Lease(store, f"_gamelake/leases/{table}", f"upkeep of {table}", pace) as lease:
        if lease.took_over:
            _fence(store, table, lease)
        yield lease


@contextmanager
def revision_lease(store: Store, pace: LeaseTiming = PATIENT_TIMING) -> Iterator[Lease]:
    """The right to change which rows of the past the tables have: to set rows back, to bring them back, to erase them.

    Two at once would each act on what the other is about to change. Appends and compactions don't ask for it.

    Raises:
        LeaseHeldError: another process holds it.
    """
    with Lease(store, "_gamelake/leases/revision", "the revision of rows", pace) as lease:
        yield lease


def commit_rewrite(store: Store, table: str, version: int, actions: Sequence[Action], lease: Lease) -> int | None:
    """Put an entry, made when the table had a version, behind its newest one.

    Returns:
        The entry's version; None if another entry since then did more than append, so that this one may be wrong.

    Raises:
        LeaseLostError: another process has taken the lease over.
    """
    lease.require()
    content = encode_entry(actions)
    while not store.put_new(entry_path(table, version + 1), content):
        version += 1
        other = store.get(entry_path(table, version)) or b""
        _require_newest(_token_in(other), lease, table)
        if not only_appends(other):
            return None
    return version + 1


def write_replacement(store: Store, table: str, old: FileEntry, rows: pa.Table) -> DataFile:
    """Write rows, without their partition columns, as a file of the partition of one that it is to replace."""
    content, statistics = encode_parquet(rows, _UNIQUE)
    path = new_file_name(old.path.rpartition("/")[0])
    store.put(_object(table, path), content.to_pybytes())
    return DataFile(
        path=path, size=content.size, rows=rows.num_rows, partition=dict(old.partition), statistics=statistics
    )


def discard(store: Store, table: str, files: Iterable[DataFile]) -> None:
    """Delete files that no commit came to name."""
    for file in files:
        store.delete(_object(table, file.path))


def only_appends(entry: bytes) -> bool:
    """Whether an entry leaves the files alone that were there before it."""
    kinds: set[str] = {kind for action in decode_entry(entry) for kind in action}
    return not {"remove", "protocol"} & kinds


def _object(table: str, path: str) -> str:
    """Where a file stands whose path the log has, percent-encoded."""
    return f"{table}/{unquote(path)}"


def _fence(store: Store, table: str, lease: Lease) -> None:
    """See that no commit of the former holder can come any more, whatever it has begun."""
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
        raise LeaseLostError(f"another process has taken over the upkeep of {table}; this one has committed nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """New files of a table, and those that they replace.

    Attributes:
        table_id: the table's own id, empty for a new one.
        properties: the table's, where its columns and properties are set anew; None leaves both as they are.
        notes: what the commit says of itself to whoever reads it.
        comments: what the table and its columns mean, where its columns are set anew.
    """

    entry: TableFiles
    removed: Sequence[FileEntry]
    transaction: BatchTransaction
    table_id: str = ""
    properties: Mapping[str, str] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    comments: Comments = NO_COMMENTS

    def commit(self, store: Store, version: int) -> bool:
        """Try to be a version of the table; gives whether it is."""
        now = now_milliseconds()
        info = commit_info(now, "WRITE", {"mode": "Overwrite"}, notes=self.notes)
        head = [info, transaction_action(self.transaction.app_id, self.transaction.version, now)]
        if self.properties is not None:
            protocol, metadata = table_actions(self.entry, self.properties, now, self.table_id, self.comments)
            head += [protocol, metadata] if version == 0 else [metadata]
        removed = [remove_action(file, now) for file in self.removed]
        added = [add_action(file, now) for file in self.entry.files]
        return store.put_new(entry_path(self.entry.table, version), encode_entry([*head, *removed, *added]))
