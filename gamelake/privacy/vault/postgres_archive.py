"""What backup and restore ask of a PostgreSQL vault, inside a transaction of its own."""

from collections.abc import Sequence
from typing import cast

from gamelake.privacy.vault import rows
from gamelake.privacy.vault.postgres_connections import Connection
from gamelake.privacy.vault.vault import Erasure, KeptData, PlayerRecord

_PAGE = f"SELECT {rows.PLAYER} FROM players WHERE token > %s ORDER BY token LIMIT %s"  # noqa: S608 # our own names
_DATA = (
    f"SELECT pseudonym, {rows.KEPT} FROM personal_data WHERE pseudonym = ANY(%s) "  # noqa: S608 # our own names
    "ORDER BY pseudonym, kept_at, fingerprint"
)
_PUT_PLAYERS = (
    "INSERT INTO players (token, game, pseudonym, key_id, wrapped_key) "
    "SELECT given.* FROM unnest(%s::bytea[], %s::text[], %s::text[], %s::text[], %s::bytea[]) "
    "AS given (token, game, pseudonym, key_id, wrapped_key) "
    "WHERE NOT EXISTS (SELECT 1 FROM erasures WHERE erasures.pseudonym = given.pseudonym) ON CONFLICT DO NOTHING"
)
_PUT_DATA = (
    "INSERT INTO personal_data (pseudonym, fingerprint, sealed, kept_at) "
    "SELECT given.* FROM unnest(%s::text[], %s::bytea[], %s::bytea[], %s::text[]) "
    "AS given (pseudonym, fingerprint, sealed, kept_at) "
    "JOIN players ON players.pseudonym = given.pseudonym ON CONFLICT DO NOTHING"
)
_ENFORCE = (
    "INSERT INTO erasures (game, pseudonym, erased_at, erased_by) "
    "SELECT DISTINCT ON (given.pseudonym) given.* FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) "
    "AS given (game, pseudonym, erased_at, erased_by) "
    "WHERE NOT EXISTS (SELECT 1 FROM erasures WHERE erasures.pseudonym = given.pseudonym)"
)


def records(connection: Connection, after: bytes, most: int) -> list[PlayerRecord]:
    """See `Vault.records`."""
    players = [rows.player(row) for row in connection.execute(_PAGE, (after, most)).fetchall()]
    data: dict[str, list[KeptData]] = {each.pseudonym: [] for each in players}
    for pseudonym, *kept in connection.execute(_DATA, (list(data),)).fetchall():
        data[cast(str, pseudonym)].append(rows.kept(tuple(kept)))
    return [PlayerRecord(player=each, data=tuple(data[each.pseudonym])) for each in players]


def restore(connection: Connection, given: Sequence[PlayerRecord]) -> int:
    """See `Vault.restore`."""
    if not given:
        return 0
    columns = zip(*(rows.player_row(each.player) for each in given), strict=True)
    put = connection.execute(_PUT_PLAYERS, [list(column) for column in columns]).rowcount
    data = [(each.player.pseudonym, kept) for each in given for kept in each.data]
    kept_columns = (
        [pseudonym for pseudonym, _ in data],
        [kept.fingerprint for _, kept in data],
        [kept.sealed for _, kept in data],
        [kept.kept_at.isoformat() for _, kept in data],
    )
    connection.execute(_PUT_DATA, kept_columns)
    return put


def enforce(connection: Connection, erasures: Sequence[Erasure]) -> int:
    """See `Vault.enforce`."""
    columns = (
        [each.game for each in erasures],
        [each.pseudonym for each in erasures],
        [each.erased_at.isoformat() for each in erasures],
        [each.erased_by for each in erasures],
    )
    connection.execute(_ENFORCE, columns)
    return connection.execute("DELETE FROM players WHERE pseudonym IN (SELECT pseudonym FROM erasures)").rowcount
