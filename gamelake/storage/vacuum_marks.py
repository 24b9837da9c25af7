"""Marks of vacuums: while a table has one, deletes of files that it no longer needs may still reach the store.

A vacuum writes its mark, then checks that it still has the table's maintenance lease, and only then decides and
deletes. A restore or clone has the lease, then looks for marks, and only then which files are there. Whatever the order
of their requests, either the vacuum finds that it has lost the lease, or the other one finds the mark and makes copies.
"""

from gamelake.model.naming import VACUUM_MARKS
from gamelake.storage.leases import Lease
from gamelake.storage.store import Store


def begin_vacuum(store: Store, table: str, lease: Lease) -> None:
    """Write the mark of a lease's holder.

    Raises:
        LeaseLostError: another process has taken the lease over.
    """
    store.put(_path(table, lease.token), b"")
    lease.require()


def end_vacuum(store: Store, table: str, lease: Lease) -> None:
    """Delete the mark of a lease's holder, once the store has answered all its deletes.

    The marks of vacuums that were killed go with it; not those of a holder from whom the lease was taken over just now,
    as it may only have stalled.
    """
    ended = [lease.token] if lease.took_over else _tokens(store, table)
    for token in ended:
        if token <= lease.token:
            store.delete(_path(table, token))


def may_be_vacuumed(store: Store, table: str) -> bool:
    """Whether a vacuum of a table has begun and is not known to have ended."""
    return bool(_tokens(store, table))


def _tokens(store: Store, table: str) -> list[int]:
    return [int(path.rsplit("/", 1)[-1]) for path in store.paths(f"{VACUUM_MARKS}/{table}")]


def _path(table: str, token: int) -> str:
    return f"{VACUUM_MARKS}/{table}/{token:012d}"
