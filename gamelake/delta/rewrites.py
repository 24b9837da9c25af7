"""Rewrites: commits that replace files of a table under a lease, while streams append to it.

A lease holder that stalled may continue after another process has taken the lease over. It must not commit then. So the
new holder first commits its fencing token to the table's log, and a process with a smaller token never commits after
that entry.
Source: Delta Transaction Log Protocol, headings "Delta Log Entries" and "Transaction Identifiers".
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from gamelake.delta.commits import put_entry
from gamelake.delta.data_files import DataFile, write_rows
from gamelake.delta.log.codec import (
    Action,
    FileEntry,
    commit_info,
    contents_of,
    decode_entry,
    entry_path,
    now_milliseconds,
    transaction_action,
)
from gamelake.delta.tables import open_table
from gamelake.model.errors import LeaseLostError
from gamelake.objects.leases import Lease, LeaseTiming
from gamelake.objects.store import Store

# Maintenance of a table takes a few minutes; another process waits for it.
PATIENT_TIMING = LeaseTiming(wait=600)
_LEASE = "gamelake-lease"
_UNIQUE = frozenset({"event_id", "key", "value"})


@contextmanager
def maintenance_lease(store: Store, table: str, timing: LeaseTiming = PATIENT_TIMING) -> Iterator[Lease]:
    """Hold the lease to replace files of a table until the end of the `with` block; appends need no lease.

    Raises:
        LeaseHeldError: another process held the lease for the time `timing.wait`.
        LeaseLostError: another process has taken the lease over immediately.
        TableNotFoundError: there is no table, and the lease was taken over.
    """
    with Lease(store, f"_gamelake/leases/{table}", f"maintenance of {table}", timing) as lease:
        if lease.took_over:
            _fence(store, table, lease)
        yield lease


@contextmanager
def revision_lease(store: Store, timing: LeaseTiming = PATIENT_TIMING) -> Iterator[Lease]:
    """Hold the lease to restore, replay, backfill or erase rows of any table until the end of the `with` block.

    Without it, two such programs would each read rows that the other one is about to change. Appends and compactions
    don't need this lease.

    Raises:
        LeaseHeldError: another process held the lease for the time `timing.wait`.
    """
    with Lease(store, "_gamelake/leases/revision", "the revision of rows", timing) as lease:
        yield lease


def commit_rewrite(store: Store, table: str, version: int, actions: Sequence[Action], lease: Lease) -> int | None:
    """Commit a rewrite of a version, after the appends that others have committed since.

    Args:
        store: the lakehouse.
        table: the table's path.
        version: the version that the rewrite was made from.
        actions: of the commit.
        lease: the table's maintenance lease.

    Returns:
        The committed version. None if another commit since `version` did more than append, so that the rewrite may be
        wrong; nothing was committed then.

    Raises:
        LeaseLostError: another process has taken the lease over.
    """
    lease.require()
    # The rewrite's version may already include a newer holder's token, which no conflict would show.
    _require_newest(open_table(store.location, table).transaction_version(_LEASE) or 0, lease, table)
    while not put_entry(store, table, version + 1, actions):
        version += 1
        other = store.get(entry_path(table, version)) or b""
        _require_newest(_token_in(other), lease, table)
        if not only_appends(other):
            return None
    return version + 1


def write_replacement(store: Store, table: str, old: FileEntry, rows: pa.Table) -> DataFile:
    """Write rows as a file that will replace another one, in the same partition; nothing is committed.

    Args:
        store: the lakehouse.
        table: the table's path.
        old: the file to replace.
        rows: the table's columns without its partition columns, in Delta types (`gamelake.delta.columns`); rows in any
            order.
    """
    return write_rows(store, table, rows, old.partition, _UNIQUE)


def discard(store: Store, table: str, files: Iterable[DataFile]) -> None:
    """Delete files whose commit did not succeed."""
    store.delete_all(f"{table}/{file.path}" for file in files)


def only_appends(entry: bytes) -> bool:
    """Return True if an entry removes no file and does not change the protocol."""
    kinds: set[str] = {kind for action in decode_entry(entry) for kind in action}
    return not {"remove", "protocol"} & kinds


def _fence(store: Store, table: str, lease: Lease) -> None:
    """Commit the lease's token, so that the former holder can no longer commit."""
    handle, now = open_table(store.location, table), now_milliseconds()
    _require_newest(handle.transaction_version(_LEASE) or 0, lease, table)
    actions = [commit_info(now, "FENCE", {}), transaction_action(_LEASE, lease.token, now)]
    version = handle.version() + 1
    while not put_entry(store, table, version, actions):
        _require_newest(_token_in(store.get(entry_path(table, version)) or b""), lease, table)
        version += 1


def _token_in(entry: bytes) -> int:
    transactions = contents_of(decode_entry(entry), "txn")
    return max((each["version"] for each in transactions if each["appId"] == _LEASE), default=0)


def _require_newest(token: int, lease: Lease, table: str) -> None:
    if token > lease.token:
        raise LeaseLostError(
            f"another process has taken over the maintenance of {table} and continues; this one has committed nothing"
        )
