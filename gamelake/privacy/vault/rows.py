"""Conversion of the vault's rows, the same for both databases."""

from datetime import datetime
from typing import cast

from gamelake.privacy.vault.vault import Erasure, KeptData, StoredPlayer

# The columns in the order that the functions below expect.
PLAYER = "token, game, pseudonym, key_id, wrapped_key"
ERASURE = "number, game, pseudonym, erased_at, erased_by"
KEPT = "fingerprint, sealed, kept_at"

Row = tuple[object, ...]


def player(row: Row) -> StoredPlayer:
    """Build a player from the columns of `PLAYER`."""
    token, game, pseudonym, key_id, wrapped_key = cast("tuple[bytes, str, str, str, bytes]", row)
    return StoredPlayer(token=token, game=game, pseudonym=pseudonym, key_id=key_id, wrapped_key=wrapped_key)


def player_row(player: StoredPlayer) -> tuple[bytes, str, str, str, bytes]:
    """Return the columns of `PLAYER`."""
    return (player.token, player.game, player.pseudonym, player.key_id, player.wrapped_key)


def erasure(row: Row) -> Erasure:
    """Build an erasure from the columns of `ERASURE`."""
    number, game, pseudonym, erased_at, erased_by = cast("tuple[int, str, str, str, str]", row)
    moment = datetime.fromisoformat(erased_at)
    return Erasure(number=number, game=game, pseudonym=pseudonym, erased_at=moment, erased_by=erased_by)


def kept(row: Row) -> KeptData:
    """Build personal data from the columns of `KEPT`."""
    fingerprint, sealed, kept_at = cast("tuple[bytes, bytes, str]", row)
    return KeptData(fingerprint=fingerprint, sealed=sealed, kept_at=datetime.fromisoformat(kept_at))
