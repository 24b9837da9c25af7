"""The vault as the service sees it: players by their tokens, and what belongs to them; ciphertext only.

SQLite keeps it where there is one process, PostgreSQL in the stack.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec


class VaultUnavailableError(Exception):
    """The vault does not answer; nothing personal may be taken until it does."""


class StoredPlayer(msgspec.Struct, frozen=True, kw_only=True):
    """A player's row: found by `token`, with the player's key wrapped by the key-encryption key `key_id`."""

    token: bytes
    game: str
    pseudonym: str
    key_id: str
    wrapped_key: bytes


class SealedData(msgspec.Struct, frozen=True, kw_only=True):
    """Personal data of a player, encrypted; the same data has the same fingerprint."""

    pseudonym: str
    fingerprint: bytes
    sealed: bytes


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """The record that a player was forgotten: number, game and former pseudonym, which leads nowhere any more."""

    number: int
    game: str
    pseudonym: str
    erased_at: datetime


class Vault(Protocol):
    """Keeps players and their data. All methods may be called from any thread, and may wait for a disk or a network.

    Raises:
        VaultUnavailableError: any of them, when the vault does not answer.
    """

    def find(self, tokens: Sequence[bytes]) -> Mapping[bytes, StoredPlayer]:
        """The players that are there, by their tokens."""

    def add(self, players: Sequence[StoredPlayer]) -> Mapping[bytes, StoredPlayer]:
        """Add players; gives those that stand now, which are another's where somebody was first."""

    def keep(self, data: Sequence[SealedData]) -> None:
        """Keep data for good; what is there already stays, and data of players that are gone is dropped."""

    def data_of(self, pseudonym: str) -> Sequence[bytes]:
        """All sealed data of a player, oldest first."""

    def forget(self, token: bytes) -> Erasure | None:
        """Destroy a player's key and data, and record it; None if there is no such player."""

    def erasures_after(self, number: int) -> Sequence[Erasure]:
        """What was forgotten after an erasure, in order."""

    def wrapped_otherwise(self, key_id: str, most: int) -> Sequence[StoredPlayer]:
        """Some players whose keys are wrapped by another key than this one."""

    def rewrap(self, players: Sequence[StoredPlayer]) -> None:
        """Replace the wrapped keys of players that are still there."""

    def close(self) -> None:
        """Let go of the database."""
