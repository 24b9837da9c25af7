"""Destroys what a DELETE leaves in PostgreSQL's files: old pages of the players' table, and the log of changes.

A forgotten player's key is in the row, so the row's bytes must go: the table is written anew, and a checkpoint leaves
the log's files behind. The data itself is unreadable without that key; its bytes go when PostgreSQL needs the room.

Source: PostgreSQL 15 and 17, "VACUUM", "WAL Configuration" (`wal_recycle` must be off), "pg_switch_wal", "CHECKPOINT".
"""

import re
from datetime import UTC, datetime, timedelta

from psycopg.errors import Diagnostic

from gamelake.privacy.vault.postgres_connections import Connection, Connections

# The key of an advisory lock, which is one for all programs on a database.
_DESTROYING = 7_140_003
_PATIENCE = timedelta(minutes=10)
# Whoever wants the table waits behind us while we wait for it.
_LOCK_MILLISECONDS = 1000


def destroy(connections: Connections, last: int) -> bool:
    """Destroy what all erasures up to this one have left; whether nothing is left, and not just nothing to do now.

    Raises:
        VaultUnavailableError: the server does not answer, the table is in use, or the role lacks a right.
    """
    with connections.patient(_PATIENCE) as connection:
        if not _alone(connection):
            return False
        if _written_anew(connection) > 0:
            return False
        connection.execute("VACUUM personal_data")
        connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
        now = datetime.now(UTC).isoformat()
        connection.execute(
            "UPDATE erasures SET destroyed_at = %s WHERE number <= %s AND destroyed_at IS NULL", (now, last)
        )
        return True


def _alone(connection: Connection) -> bool:
    """Whether no other program is at it; the lock ends with the connection."""
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_DESTROYING,)).fetchone()
    return row is not None and bool(row[0])


def _written_anew(connection: Connection) -> int:
    """Write the table anew, without dead rows; how many had to be taken along for a transaction that may see them."""
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
