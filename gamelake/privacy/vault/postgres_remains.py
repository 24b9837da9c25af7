"""Destroys what a DELETE leaves in PostgreSQL's files: old pages of the table of players, and the write-ahead log.

An erased player's key is in the row, so its bytes must be destroyed: the table is rewritten, and after a checkpoint
PostgreSQL deletes the old files of the log. The data is unreadable without the key; its bytes are overwritten later.

Source: PostgreSQL 15 and 17, "VACUUM", "WAL Configuration" (`wal_recycle` must be off), "pg_switch_wal", "CHECKPOINT".
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from psycopg.errors import Diagnostic

from gamelake.privacy.vault.postgres_connections import Connection, Connections

# The key of an advisory lock, shared by all programs on a database.
_DESTROYING = 7_140_003
_PATIENCE = timedelta(minutes=10)
# Other statements on the table wait while this one waits for its lock.
_LOCK_MILLISECONDS = 1000


def destroy(connections: Connections, last: int) -> bool:
    """Destroy what the erasures up to `last` have left; whether nothing is left.

    Raises:
        VaultUnavailableError: the server is unavailable, the table is in use, or the role lacks a right.
    """
    with connections.patient(_PATIENCE) as connection, _lock(connection) as is_ours:
        if not is_ours or _rewrite_table(connection) > 0:
            return False
        connection.execute("VACUUM personal_data")
        connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
        now = datetime.now(UTC).isoformat()
        connection.execute(
            "UPDATE erasures SET destroyed_at = %s WHERE number <= %s AND destroyed_at IS NULL", (now, last)
        )
        return True


@contextmanager
def _lock(connection: Connection) -> Iterator[bool]:
    """Take the lock if it is free, and yield True if it was.

    It is released before the connection is closed: the server notices a closed connection only later, and until then
    another attempt would find the lock taken.
    """
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_DESTROYING,)).fetchone()
    is_ours = row is not None and bool(row[0])
    try:
        yield is_ours
    finally:
        if is_ours and not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s)", (_DESTROYING,))


def _rewrite_table(connection: Connection) -> int:
    """Rewrite the table without dead rows; returns how many stay, as a transaction may still see them."""
    details: list[str] = []

    def note(notice: Diagnostic) -> None:
        details.append(notice.message_detail or "")

    connection.add_notice_handler(note)
    connection.execute(f"SET lock_timeout = {_LOCK_MILLISECONDS}")
    connection.execute("VACUUM (FULL, VERBOSE) players")
    connection.remove_notice_handler(note)
    # "0 dead row versions cannot be removed yet." stands at its beginning, in whatever language.
    numbers = [int(found.group()) for detail in details if (found := re.search(r"\d+", detail))]
    return max(numbers, default=0)
