"""The interface of the vault: players by their tokens, and their personal data; ciphertext only.

SQLite for one machine, PostgreSQL in the stack.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from gamelake.model.errors import TransientError


class VaultUnavailableError(TransientError):
    """The vault is unavailable; no personal data may be accepted until it is back."""


class VaultRefusedError(VaultUnavailableError):
    """The vault rejects a row; it may accept the others."""


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


class KeptData(msgspec.Struct, frozen=True, kw_only=True):
    """Personal data of a player in the vault: encrypted, with the time of its arrival."""

    fingerprint: bytes
    sealed: bytes
    kept_at: datetime


class PlayerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All that the vault has of a player."""

    player: StoredPlayer
    data: tuple[KeptData, ...]


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """The record of an erasure: number, game, and the former pseudonym, which can no longer be resolved.

    `erased_by` is a role or a key's id, never a person's name.
    """

    number: int
    game: str
    pseudonym: str
    erased_at: datetime
    erased_by: str


class Rewrapping(msgspec.Struct, frozen=True, kw_only=True):
    """A player's row before and after another key-encryption key has wrapped the player's key."""

    before: StoredPlayer
    after: StoredPlayer


class Vault(Protocol):
    """Stores players and their data. All methods are thread-safe, and may block on disk or network.

    Raises:
        VaultUnavailableError: by any method, if the vault is unavailable.
    """

    def find(self, tokens: Sequence[bytes]) -> Mapping[bytes, StoredPlayer]:
        """Return the existing players, by token."""

    def named(self, pseudonym: str) -> StoredPlayer | None:
        """Return the player with a pseudonym, None if there is none."""

    def add(self, players: Sequence[StoredPlayer]) -> Mapping[bytes, StoredPlayer]:
        """Add players; returns the stored rows, which are another process's if it was faster."""

    def keep(self, data: Sequence[SealedData]) -> None:
        """Store data; existing data stays, and data of erased players is dropped."""

    def take(self, players: Sequence[StoredPlayer], data: Sequence[SealedData]) -> Mapping[bytes, StoredPlayer]:
        """Do what `add` and `keep` do, in one transaction: all of it or nothing.

        Raises:
            VaultRefusedError: a row is invalid.
        """

    def data_of(self, pseudonym: str) -> Sequence[bytes]:
        """Return all sealed data of a player, oldest first."""

    def forget(self, token: bytes, erased_by: str) -> Erasure | None:
        """Destroy a player's key and data, and record it; None if there is no such player."""

    def destroy_remains(self) -> bool:
        """Destroy what deleted rows left in the database's files, if that is pending; `forget` does so too.

        Returns False if another connection prevents it, or does it already: then try again later.
        """

    def erasures_after(self, number: int) -> Sequence[Erasure]:
        """Return the erasures after a number, in order."""

    def last_erasure(self) -> int:
        """Return the number of the newest erasure, 0 if there is none."""

    def wrapped_otherwise(self, key_id: str, most: int, after: bytes = b"") -> Sequence[StoredPlayer]:
        """Return a page of players whose keys are wrapped by another key than this one, by token, after a token."""

    def rewrap(self, changes: Sequence[Rewrapping]) -> int:
        """Replace wrapped keys; returns how many.

        Erased players stay erased, and a row that has changed since stays.
        """

    def players_by_key(self) -> Mapping[str, int]:
        """Count the players' keys that each key-encryption key wraps."""

    def records(self, after: bytes, most: int) -> Sequence[PlayerRecord]:
        """Return a page of players with all their data, ordered by token, after a token."""

    def restore(self, records: Sequence[PlayerRecord]) -> int:
        """Add players with their data, except those that were erased or have another key since; returns how many."""

    def enforce(self, erasures: Sequence[Erasure]) -> int:
        """Record missing erasures, and delete players that exist in spite of one; returns how many.

        `destroy_remains` must follow.
        """

    def use_signature(self, signature: bytes, expires: datetime) -> bool:
        """Remember a signature as used until it expires, and forget those that have; False if it was used already."""

    def close(self) -> None:
        """Close the database."""
