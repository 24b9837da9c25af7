"""Connections to PostgreSQL with time limits in seconds; broken ones are replaced.

Source: psycopg 3.3, "Connection classes"; PostgreSQL, "Database Connection Control Functions".
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from gamelake.privacy.vault.access import VaultAccess
from gamelake.privacy.vault.vault import VaultRefusedError, VaultUnavailableError

PATIENCE = timedelta(seconds=4)
_CONNECT_SECONDS = 3
# More than a process uses at once: batches of requests, its refreshes, support.
_MOST = 4
# How often psycopg checks whether a wait was interrupted.
_POLL_SECONDS = 0.1
_Given = TypeVar("_Given")


class PlayerGoneError(VaultRefusedError):
    """A player was erased between the lookup of the row and the write."""


class Connection(psycopg.Connection[tuple[object, ...]]):
    """A connection with a time limit for every wait: the server's own timeouts do not work while it hangs."""

    patience = PATIENCE

    def wait(self, gen: PQGen[_Given], interval: float = _POLL_SECONDS, timeout: float | None = None) -> _Given:
        """See psycopg."""
        try:
            return super().wait(gen, interval, timeout or self.patience.total_seconds())
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                # The response may still arrive, and would be taken for that of the next statement.
                self.pgconn.finish()
            raise


class Connections:
    """A pool of a few connections; thread-safe. Errors of PostgreSQL become errors of the vault."""

    def __init__(self, access: VaultAccess) -> None:
        self._access = access
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(_MOST)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a transaction on a connection of its own, committed at the end of the block."""
        if not self._free.acquire(timeout=PATIENCE.total_seconds()):
            raise VaultUnavailableError("the vault is overloaded: all connections are in use")
        try:
            with _errors_of_the_vault():
                yield from self._transaction()
        finally:
            self._free.release()

    @contextmanager
    def patient(self, patience: timedelta) -> Iterator[Connection]:
        """Open a connection for long statements, each in its own transaction."""
        with _errors_of_the_vault():
            connection = self._open(patience)
            try:
                yield connection
            finally:
                connection.close()

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _transaction(self) -> Iterator[Connection]:
        connection = self._begun()
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            # The server rolls back.
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)

    def _begun(self) -> Connection:
        """A connection in a transaction; an idle one that has lost its server is replaced by a new one."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                connection.execute("BEGIN")
            except psycopg.OperationalError:
                connection.close()
                self.close()
            else:
                return connection
        connection = self._open(PATIENCE)
        connection.execute("BEGIN")
        return connection

    def _open(self, patience: timedelta) -> Connection:
        usual: dict[str, str | int | None] = {
            "application_name": "gamelake-vault",
            "connect_timeout": _CONNECT_SECONDS,
            "gssencmode": "disable",
            "options": f"-c statement_timeout={round(patience.total_seconds() * 1000)}",
        }
        parameters = usual | conninfo_to_dict(self._access.place)
        if self._access.credentials is not None:
            parameters |= {"user": self._access.credentials.username, "password": self._access.credentials.password}
        connection = Connection.connect(make_conninfo("", **parameters), autocommit=True)
        connection.patience = patience
        return connection


@contextmanager
def _errors_of_the_vault() -> Iterator[None]:
    """Convert errors; keep only the first line of the server's message, as others may quote a row."""
    try:
        yield
    except psycopg.errors.ForeignKeyViolation:
        raise PlayerGoneError("a player was erased while data was written") from None
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        raise VaultRefusedError(f"the vault rejects a row: {_first_line(error)}") from None
    except psycopg.Error as error:
        raise VaultUnavailableError(f"the vault does not answer: {_first_line(error)}") from None


def _first_line(error: psycopg.Error) -> str:
    # Break the reference cycle of error and traceback, which would keep a failed connection open for a while.
    error.with_traceback(None)
    lines = (error.diag.message_primary or str(error)).splitlines()
    return lines[0] if lines else type(error).__name__
