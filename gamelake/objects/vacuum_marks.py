"""Marks of vacuums: while a table has one, deletes of its unreferenced files may still reach the store.

A vacuum writes its mark, then checks that it still has the table's maintenance lease, and only then selects and deletes
files. A restore or a clone takes the lease, then lists the marks, and only then the files. In any order of the
requests, either the vacuum detects that it has lost the lease, or the restore or clone detects the mark and makes
copies.
"""

from gamelake.model.naming import VACUUM_MARKS
from gamelake.objects.leases import Lease
from gamelake.objects.store import Store


def begin_vacuum(store: Store, table: str, lease: Lease) -> None:
    """Write the mark of a lease's holder, before any file is selected or deleted.

    Raises:
        LeaseLostError: another process has taken the lease over.
    """
    store.put(_path(table, lease.token), b"")
    lease.require()


def end_vacuum(store: Store, table: str, lease: Lease) -> None:
    """Delete the mark of a lease's holder, once the store has responded to all its deletes.

    Marks of killed vacuums are deleted too. If this holder has taken the lease over, they stay: the former holder may
    only have stalled.
    """
    ended = [lease.token] if lease.took_over else _tokens(store, table)
    for token in ended:
        if token <= lease.token:
            store.delete(_path(table, token))


def may_be_vacuumed(store: Store, table: str) -> bool:
    """Return True if a vacuum of a table has begun and has not certainly ended."""
    return bool(store.paths(f"{VACUUM_MARKS}/{table}"))


def _tokens(store: Store, table: str) -> list[int]:
    return [int(path.rsplit("/", 1)[-1]) for path in store.paths(f"{VACUUM_MARKS}/{table}")]


def _path(table: str, token: int) -> str:
    return f"{VACUUM_MARKS}/{table}/{token:012d}"
