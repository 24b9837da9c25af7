"""Connections to PostgreSQL that wait for seconds and no longer, and are made anew when they broke.

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
# More than a process asks at once: its requests in rounds, its upkeep, support.
_MOST = 4
# How often psycopg looks whether a wait has been broken off.
_LOOK_SECONDS = 0.1
_Given = TypeVar("_Given")


class PlayerGoneError(VaultRefusedError):
    """A player was forgotten between the look for the row and the write to it."""


class Connection(psycopg.Connection[tuple[object, ...]]):
    """A connection whose every wait for the server has an end: the server's own time-outs fail when it stands still."""

    patience = PATIENCE

    def wait(self, gen: PQGen[_Given], interval: float = _LOOK_SECONDS, timeout: float | None = None) -> _Given:
        """See psycopg."""
        try:
            return super().wait(gen, interval, timeout or self.patience.total_seconds())
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                # The answer may come yet, and would be taken for the next question's.
                self.pgconn.finish()
            raise


class Connections:
    """A handful of connections, for any number of threads. What goes wrong is an error of the vault."""

    def __init__(self, access: VaultAccess) -> None:
        self._access = access
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(_MOST)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction, committed at the end, on a connection that nobody else has."""
        if not self._free.acquire(timeout=PATIENCE.total_seconds()):
            raise VaultUnavailableError("the vault is slower than what is asked of it")
        try:
            with _errors_of_the_vault():
                yield from self._transaction()
        finally:
            self._free.release()

    @contextmanager
    def patient(self, patience: timedelta) -> Iterator[Connection]:
        """A connection for one long statement after the other, each its own transaction."""
        with _errors_of_the_vault():
            connection = self._open(patience)
            try:
                yield connection
            finally:
                connection.close()

    def close(self) -> None:
        """Let go of all connections that nobody uses."""
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
            # The server takes back what was not committed.
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)

    def _begun(self) -> Connection:
        """A connection in a transaction; one that was idle may have lost its server, and a new one finds it again."""
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
    """Only the first line of what the server says: others may quote a row."""
    try:
        yield
    except psycopg.errors.ForeignKeyViolation:
        raise PlayerGoneError("a player was forgotten while data was on its way") from None
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        raise VaultRefusedError(f"the vault refuses a row: {_told(error)}") from None
    except psycopg.Error as error:
        raise VaultUnavailableError(f"the vault does not answer: {_told(error)}") from None


def _told(error: psycopg.Error) -> str:
    # Psycopg's frames hold the error that holds them: a connection that was never made would stay open for a while.
    error.with_traceback(None)
    lines = (error.diag.message_primary or str(error)).splitlines()
    return lines[0] if lines else type(error).__name__
