"""The vault in one SQLite file, for one machine.

Deleted rows are overwritten (`secure_delete`), and the write-ahead log that still has them is truncated.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from gamelake.privacy.vault import rows
from gamelake.privacy.vault.migrations import Dialect, migrations
from gamelake.privacy.vault.sql_vault import SqlVault
from gamelake.privacy.vault.vault import (
    Erasure,
    PlayerRecord,
    Rewrapping,
    SealedData,
    StoredPlayer,
    VaultRefusedError,
    VaultUnavailableError,
)

_DIALECT = Dialect(bytes="BLOB", counter="INTEGER PRIMARY KEY AUTOINCREMENT")
_BUSY_SECONDS = 5
_ADD_PLAYER = f"INSERT INTO players ({rows.PLAYER}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608 # our names
_KEEP = (
    "INSERT INTO personal_data (pseudonym, fingerprint, sealed, kept_at) SELECT ?, ?, ?, ? "
    "WHERE EXISTS (SELECT 1 FROM players WHERE pseudonym = ?) ON CONFLICT DO NOTHING"
)
_REWRAP = "UPDATE players SET key_id = ?, wrapped_key = ? WHERE token = ? AND wrapped_key = ?"
# SQLite's own limit on variables is far above.
_TOKENS_AT_ONCE = 500
_PAGE = f"SELECT {rows.PLAYER} FROM players WHERE token > ? ORDER BY token LIMIT ?"  # noqa: S608 # our own names
_DATA = f"SELECT {rows.KEPT} FROM personal_data WHERE pseudonym = ? ORDER BY kept_at, fingerprint"  # noqa: S608 # ours
_RESTORE_PLAYER = (
    f"INSERT INTO players ({rows.PLAYER}) SELECT ?, ?, ?, ?, ? "  # noqa: S608 # our own names
    "WHERE NOT EXISTS (SELECT 1 FROM erasures WHERE pseudonym = ?) ON CONFLICT DO NOTHING"
)
_RESTORE_DATA = (
    "INSERT INTO personal_data (pseudonym, fingerprint, sealed, kept_at) SELECT ?, ?, ?, ? "
    "WHERE EXISTS (SELECT 1 FROM players WHERE pseudonym = ?) ON CONFLICT DO NOTHING"
)
_ENFORCE = (
    "INSERT INTO erasures (game, pseudonym, erased_at, erased_by) SELECT ?, ?, ?, ? "
    "WHERE NOT EXISTS (SELECT 1 FROM erasures WHERE pseudonym = ?)"
)
_USE = "INSERT INTO used_signatures (signature, expires_at) VALUES (?, ?) ON CONFLICT DO NOTHING"


class SqliteVault(SqlVault):
    """A vault in a file, which is created if it is missing."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        self._file = file
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        with self._connected():
            pass

    def find(self, tokens: Sequence[bytes]) -> Mapping[bytes, StoredPlayer]:
        """See `Vault`."""
        with self._connected() as connection:
            return _found(connection, tokens)

    def take(self, players: Sequence[StoredPlayer], data: Sequence[SealedData]) -> Mapping[bytes, StoredPlayer]:
        """See `Vault`."""
        now = datetime.now(UTC).isoformat()
        with self._transaction() as connection:
            connection.executemany(_ADD_PLAYER, [rows.player_row(each) for each in players])
            kept = [(each.pseudonym, each.fingerprint, each.sealed, now, each.pseudonym) for each in data]
            connection.executemany(_KEEP, kept)
            return _found(connection, [each.token for each in players])

    def forget(self, token: bytes, erased_by: str) -> Erasure | None:
        """See `Vault`."""
        with self._transaction() as connection:
            player = _found(connection, [token]).get(token)
            if player is None:
                return None
            connection.execute("DELETE FROM players WHERE token = ?", (token,))
            erased_at = datetime.now(UTC)
            inserted = connection.execute(
                "INSERT INTO erasures (game, pseudonym, erased_at, erased_by) VALUES (?, ?, ?, ?)",
                (player.game, player.pseudonym, erased_at.isoformat(), erased_by),
            )
            number = inserted.lastrowid or 0
        self.destroy_remains()
        return Erasure(
            number=number, game=player.game, pseudonym=player.pseudonym, erased_at=erased_at, erased_by=erased_by
        )

    def destroy_remains(self) -> bool:
        """See `Vault`."""
        with self._connected() as connection:
            last = connection.execute("SELECT max(number) FROM erasures WHERE destroyed_at IS NULL").fetchone()[0]
            if last is None:
                return True
            # The pages were overwritten; the write-ahead log has them until it is truncated, which a reader can delay.
            is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if is_busy:
                return False
            destroyed = "UPDATE erasures SET destroyed_at = ? WHERE number <= ? AND destroyed_at IS NULL"
            connection.execute(destroyed, (datetime.now(UTC).isoformat(), last))
            return True

    def rewrap(self, changes: Sequence[Rewrapping]) -> int:
        """See `Vault`."""
        wrapped = [(c.after.key_id, c.after.wrapped_key, c.before.token, c.before.wrapped_key) for c in changes]
        with self._transaction() as connection:
            return connection.executemany(_REWRAP, wrapped).rowcount

    def records(self, after: bytes, most: int) -> Sequence[PlayerRecord]:
        """See `Vault`."""
        with self._transaction() as connection:
            return _records(connection, after, most)

    def restore(self, records: Sequence[PlayerRecord]) -> int:
        """See `Vault`."""
        with self._transaction() as connection:
            return _restore(connection, records)

    def enforce(self, erasures: Sequence[Erasure]) -> int:
        """See `Vault`."""
        with self._transaction() as connection:
            return _enforce(connection, erasures)

    def use_signature(self, signature: bytes, expires: datetime) -> bool:
        """See `Vault`."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM used_signatures WHERE expires_at < ?", (int(time.time()),))
            return connection.execute(_USE, (signature, int(expires.timestamp()))).rowcount == 1

    def close(self) -> None:
        """See `Vault`."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open_connection(self) -> sqlite3.Connection:
        """The connection to the file that is there.

        A file that was taken away stays open, and what is written to it is lost with the process: so nothing is.
        """
        if self._connection is None:
            self._connection = _opened(self._file)
            self._identity = _identity(self._file)
        if _identity(self._file) != self._identity:
            raise VaultUnavailableError(f"the vault {self._file} is gone: restore it, or start without it")
        return self._connection

    def _rows(self, statement: str, *values: object) -> Sequence[rows.Row]:
        with self._connected() as connection:
            return connection.execute(statement, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._open_connection()
            except (sqlite3.DataError, sqlite3.IntegrityError) as error:
                raise VaultRefusedError(f"the vault {self._file} rejects a row: {error}") from error
            except sqlite3.Error as error:
                raise VaultUnavailableError(f"the vault {self._file} does not answer: {error}") from error


def _identity(file: Path) -> tuple[int, int] | None:
    """Which file stands under a name, None if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


def _opened(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")
    have = connection.execute("PRAGMA user_version").fetchone()[0]
    for number, script in migrations(_DIALECT):
        if number > have:
            connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")
    return connection


def _found(connection: sqlite3.Connection, tokens: Sequence[bytes]) -> dict[bytes, StoredPlayer]:
    found: dict[bytes, StoredPlayer] = {}
    for start in range(0, len(tokens), _TOKENS_AT_ONCE):
        some = tokens[start : start + _TOKENS_AT_ONCE]
        question = f"SELECT {rows.PLAYER} FROM players WHERE token IN ({', '.join('?' * len(some))})"  # noqa: S608 # marks
        found |= {row[0]: rows.player(row) for row in connection.execute(question, some)}
    return found


def _records(connection: sqlite3.Connection, after: bytes, most: int) -> list[PlayerRecord]:
    """See `Vault.records`."""
    players = map(rows.player, connection.execute(_PAGE, (after, most)).fetchall())
    return [
        PlayerRecord(player=each, data=tuple(map(rows.kept, connection.execute(_DATA, (each.pseudonym,)))))
        for each in players
    ]


def _restore(connection: sqlite3.Connection, given: Sequence[PlayerRecord]) -> int:
    """See `Vault.restore`."""
    players = [(*rows.player_row(each.player), each.player.pseudonym) for each in given]
    put = connection.executemany(_RESTORE_PLAYER, players).rowcount
    data = [
        (each.player.pseudonym, kept.fingerprint, kept.sealed, kept.kept_at.isoformat(), each.player.pseudonym)
        for each in given
        for kept in each.data
    ]
    connection.executemany(_RESTORE_DATA, data)
    return put


def _enforce(connection: sqlite3.Connection, erasures: Sequence[Erasure]) -> int:
    """See `Vault.enforce`."""
    erased = [(e.game, e.pseudonym, e.erased_at.isoformat(), e.erased_by, e.pseudonym) for e in erasures]
    connection.executemany(_ENFORCE, erased)
    return connection.execute("DELETE FROM players WHERE pseudonym IN (SELECT pseudonym FROM erasures)").rowcount
