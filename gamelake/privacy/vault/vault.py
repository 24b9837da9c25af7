"""The vault as the service sees it: players by their tokens, and what belongs to them; ciphertext only.

SQLite keeps it where there is one process, PostgreSQL in the stack.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from gamelake.model.errors import TransientError


class VaultUnavailableError(TransientError):
    """The vault does not answer; nothing personal may be taken until it does."""


class VaultRefusedError(VaultUnavailableError):
    """The vault answers, and won't have a row; without that row it may take the others."""


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
    """Personal data of a player as the vault has it: encrypted, and when it came."""

    fingerprint: bytes
    sealed: bytes
    kept_at: datetime


class PlayerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All that the vault has of a player."""

    player: StoredPlayer
    data: tuple[KeptData, ...]


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """The record that a player was forgotten: number, game and former pseudonym, which leads nowhere any more.

    `erased_by` is a role or a key's id, never a person's name; empty where nobody had said it yet.
    """

    number: int
    game: str
    pseudonym: str
    erased_at: datetime
    erased_by: str = ""


class Rewrapping(msgspec.Struct, frozen=True, kw_only=True):
    """A player's row before and after another key-encryption key has wrapped the player's key."""

    before: StoredPlayer
    after: StoredPlayer


class Vault(Protocol):
    """Keeps players and their data. All methods may be called from any thread, and may wait for a disk or a network.

    Raises:
        VaultUnavailableError: any of them, when the vault does not answer.
    """

    def find(self, tokens: Sequence[bytes]) -> Mapping[bytes, StoredPlayer]:
        """The players that are there, by their tokens."""

    def named(self, pseudonym: str) -> StoredPlayer | None:
        """The player who has a pseudonym, None if nobody has it."""

    def add(self, players: Sequence[StoredPlayer]) -> Mapping[bytes, StoredPlayer]:
        """Add players; gives those that stand now, which are another's where somebody was first."""

    def keep(self, data: Sequence[SealedData]) -> None:
        """Keep data for good; what is there already stays, and data of players that are gone is dropped."""

    def take(self, players: Sequence[StoredPlayer], data: Sequence[SealedData]) -> Mapping[bytes, StoredPlayer]:
        """Do what `add` and `keep` do, in one transaction: all of it or nothing.

        Raises:
            VaultRefusedError: one row can't be.
        """

    def data_of(self, pseudonym: str) -> Sequence[bytes]:
        """All sealed data of a player, oldest first."""

    def forget(self, token: bytes, erased_by: str) -> Erasure | None:
        """Destroy a player's key and data, and record it; None if there is no such player."""

    def destroy_remains(self) -> bool:
        """Destroy what deleted rows left in the database's files, as far as that is yet to do; `forget` does so too.

        False if somebody else is in the way just now, or at it: then it must be tried again.
        """

    def erasures_after(self, number: int) -> Sequence[Erasure]:
        """What was forgotten after an erasure, in order."""

    def wrapped_otherwise(self, key_id: str, most: int, after: bytes = b"") -> Sequence[StoredPlayer]:
        """Players whose keys are wrapped by another key than this one, by their tokens, those after a token."""

    def rewrap(self, changes: Sequence[Rewrapping]) -> int:
        """Replace wrapped keys; gives how many.

        Who is gone stays gone, and a row that is not what it was before stays as it is.
        """

    def players_by_key(self) -> Mapping[str, int]:
        """How many players' keys each key-encryption key wraps."""

    def records(self, after: bytes, most: int) -> Sequence[PlayerRecord]:
        """Players with all that is there of them, by their tokens, those after a token."""

    def restore(self, records: Sequence[PlayerRecord]) -> int:
        """Add players with their data, but nobody who was erased or has got another key since; gives how many."""

    def enforce(self, erasures: Sequence[Erasure]) -> int:
        """Take over what is not recorded here of erasures, and drop whoever is there in spite of one; gives how many.

        `destroy_remains` then destroys what those who were dropped left.
        """

    def close(self) -> None:
        """Let go of the database."""
