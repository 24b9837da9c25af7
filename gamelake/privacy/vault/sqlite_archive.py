"""What backup and restore ask of an SQLite vault, inside a transaction of its own."""

import sqlite3
from collections.abc import Sequence

from gamelake.privacy.vault import rows
from gamelake.privacy.vault.vault import Erasure, PlayerRecord

_PAGE = f"SELECT {rows.PLAYER} FROM players WHERE token > ? ORDER BY token LIMIT ?"  # noqa: S608 # our own names
_DATA = f"SELECT {rows.KEPT} FROM personal_data WHERE pseudonym = ? ORDER BY kept_at, fingerprint"  # noqa: S608 # ours
_PUT_PLAYER = (
    f"INSERT INTO players ({rows.PLAYER}) SELECT ?, ?, ?, ?, ? "  # noqa: S608 # our own names
    "WHERE NOT EXISTS (SELECT 1 FROM erasures WHERE pseudonym = ?) ON CONFLICT DO NOTHING"
)
_PUT_DATA = (
    "INSERT INTO personal_data (pseudonym, fingerprint, sealed, kept_at) SELECT ?, ?, ?, ? "
    "WHERE EXISTS (SELECT 1 FROM players WHERE pseudonym = ?) ON CONFLICT DO NOTHING"
)
_ENFORCE = (
    "INSERT INTO erasures (game, pseudonym, erased_at, erased_by) SELECT ?, ?, ?, ? "
    "WHERE NOT EXISTS (SELECT 1 FROM erasures WHERE pseudonym = ?)"
)


def records(connection: sqlite3.Connection, after: bytes, most: int) -> list[PlayerRecord]:
    """See `Vault.records`."""
    players = map(rows.player, connection.execute(_PAGE, (after, most)).fetchall())
    return [
        PlayerRecord(player=each, data=tuple(map(rows.kept, connection.execute(_DATA, (each.pseudonym,)))))
        for each in players
    ]


def restore(connection: sqlite3.Connection, given: Sequence[PlayerRecord]) -> int:
    """See `Vault.restore`."""
    players = [(*rows.player_row(each.player), each.player.pseudonym) for each in given]
    put = connection.executemany(_PUT_PLAYER, players).rowcount
    data = [
        (each.player.pseudonym, kept.fingerprint, kept.sealed, kept.kept_at.isoformat(), each.player.pseudonym)
        for each in given
        for kept in each.data
    ]
    connection.executemany(_PUT_DATA, data)
    return put


def enforce(connection: sqlite3.Connection, erasures: Sequence[Erasure]) -> int:
    """See `Vault.enforce`."""
    erased = [(e.game, e.pseudonym, e.erased_at.isoformat(), e.erased_by, e.pseudonym) for e in erasures]
    connection.executemany(_ENFORCE, erased)
    return connection.execute("DELETE FROM players WHERE pseudonym IN (SELECT pseudonym FROM erasures)").rowcount
