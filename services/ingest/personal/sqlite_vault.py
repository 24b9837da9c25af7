"""The vault in one SQLite file, for one machine.

What is deleted is overwritten (`secure_delete`), and the log of changes that still had it is emptied.
"""

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from services.ingest.personal.migrations import Dialect, migrations
from services.ingest.personal.vault import Erasure, SealedData, StoredPlayer, VaultUnavailableError

_DIALECT = Dialect(bytes="BLOB", counter="INTEGER PRIMARY KEY AUTOINCREMENT")
_BUSY_SECONDS = 5
_PLAYER = "token, game, pseudonym, key_id, wrapped_key"
_ADD_PLAYER = f"INSERT INTO players ({_PLAYER}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608 # our names
# SQLite's own limit on variables is far above.
_TOKENS_AT_ONCE = 500


class SqliteVault:
    """A vault in a file, which is made when it is not there."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        self._file = file
        self._connection: sqlite3.Connection | None = None
        with self._connected():
            pass

    def find(self, tokens: Sequence[bytes]) -> Mapping[bytes, StoredPlayer]:
        """See `Vault`."""
        with self._connected() as connection:
            return _found(connection, tokens)

    def add(self, players: Sequence[StoredPlayer]) -> Mapping[bytes, StoredPlayer]:
        """See `Vault`."""
        rows = [(each.token, each.game, each.pseudonym, each.key_id, each.wrapped_key) for each in players]
        with self._transaction() as connection:
            connection.executemany(_ADD_PLAYER, rows)
            return _found(connection, [each.token for each in players])

    def keep(self, data: Sequence[SealedData]) -> None:
        """See `Vault`."""
        now = datetime.now(UTC).isoformat()
        rows = [(each.pseudonym, each.fingerprint, each.sealed, now, each.pseudonym) for each in data]
        with self._transaction() as connection:
            connection.executemany(
                "INSERT INTO personal_data (pseudonym, fingerprint, sealed, kept_at) SELECT ?, ?, ?, ? "
                "WHERE EXISTS (SELECT 1 FROM players WHERE pseudonym = ?) ON CONFLICT DO NOTHING",
                rows,
            )

    def data_of(self, pseudonym: str) -> Sequence[bytes]:
        """See `Vault`."""
        question = "SELECT sealed FROM personal_data WHERE pseudonym = ? ORDER BY kept_at, fingerprint"
        with self._connected() as connection:
            return [sealed for (sealed,) in connection.execute(question, (pseudonym,))]

    def forget(self, token: bytes) -> Erasure | None:
        """See `Vault`."""
        with self._transaction() as connection:
            player = _found(connection, [token]).get(token)
            if player is None:
                return None
            connection.execute("DELETE FROM players WHERE token = ?", (token,))
            erased_at = datetime.now(UTC)
            inserted = connection.execute(
                "INSERT INTO erasures (game, pseudonym, erased_at) VALUES (?, ?, ?)",
                (player.game, player.pseudonym, erased_at.isoformat()),
            )
            number = inserted.lastrowid or 0
        with self._connected() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Erasure(number=number, game=player.game, pseudonym=player.pseudonym, erased_at=erased_at)

    def erasures_after(self, number: int) -> Sequence[Erasure]:
        """See `Vault`."""
        question = "SELECT number, game, pseudonym, erased_at FROM erasures WHERE number > ? ORDER BY number"
        with self._connected() as connection:
            rows = connection.execute(question, (number,)).fetchall()
        return [Erasure(number=n, game=g, pseudonym=p, erased_at=datetime.fromisoformat(at)) for n, g, p, at in rows]

    def wrapped_otherwise(self, key_id: str, most: int) -> Sequence[StoredPlayer]:
        """See `Vault`."""
        question = f"SELECT {_PLAYER} FROM players WHERE key_id <> ? LIMIT ?"  # noqa: S608 # our own column names
        with self._connected() as connection:
            return [_player(row) for row in connection.execute(question, (key_id, most))]

    def rewrap(self, players: Sequence[StoredPlayer]) -> None:
        """See `Vault`."""
        rows = [(each.key_id, each.wrapped_key, each.token) for each in players]
        with self._transaction() as connection:
            connection.executemany("UPDATE players SET key_id = ?, wrapped_key = ? WHERE token = ?", rows)

    def close(self) -> None:
        """See `Vault`."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

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
                if self._connection is None:
                    self._connection = _opened(self._file)
                yield self._connection
            except sqlite3.Error as error:
                raise VaultUnavailableError(f"the vault {self._file} does not answer: {error}") from error


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
        question = f"SELECT {_PLAYER} FROM players WHERE token IN ({', '.join('?' * len(some))})"  # noqa: S608 # marks
        found |= {row[0]: _player(row) for row in connection.execute(question, some)}
    return found


def _player(row: tuple[bytes, str, str, str, bytes]) -> StoredPlayer:
    token, game, pseudonym, key_id, wrapped_key = row
    return StoredPlayer(token=token, game=game, pseudonym=pseudonym, key_id=key_id, wrapped_key=wrapped_key)
