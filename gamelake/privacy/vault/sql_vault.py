"""The vault's statements that are the same in both databases."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import cast

from gamelake.privacy.vault import rows
from gamelake.privacy.vault.vault import Erasure, SealedData, StoredPlayer


class SqlVault(ABC):
    """Reads rows by statements in which `?` stands for a value; each database writes in its own way."""

    @abstractmethod
    def _rows(self, statement: str, *values: object) -> Sequence[rows.Row]:
        """Returns the rows of a statement, which runs in a transaction of its own.

        Raises:
            VaultUnavailableError: the database does not respond.
        """

    @abstractmethod
    def take(self, players: Sequence[StoredPlayer], data: Sequence[SealedData]) -> Mapping[bytes, StoredPlayer]:
        """See `Vault`."""

    def named(self, pseudonym: str) -> StoredPlayer | None:
        """See `Vault`."""
        found = self._rows(f"SELECT {rows.PLAYER} FROM players WHERE pseudonym = ?", pseudonym)  # noqa: S608 # our names
        return rows.player(found[0]) if found else None

    def add(self, players: Sequence[StoredPlayer]) -> Mapping[bytes, StoredPlayer]:
        """See `Vault`."""
        return self.take(players, ())

    def keep(self, data: Sequence[SealedData]) -> None:
        """See `Vault`."""
        self.take((), data)

    def data_of(self, pseudonym: str) -> Sequence[bytes]:
        """See `Vault`."""
        statement = "SELECT sealed FROM personal_data WHERE pseudonym = ? ORDER BY kept_at, fingerprint"
        return [cast(bytes, sealed) for (sealed,) in self._rows(statement, pseudonym)]

    def erasures_after(self, number: int) -> Sequence[Erasure]:
        """See `Vault`."""
        statement = f"SELECT {rows.ERASURE} FROM erasures WHERE number > ? ORDER BY number"  # noqa: S608 # our names
        return [rows.erasure(row) for row in self._rows(statement, number)]

    def last_erasure(self) -> int:
        """See `Vault`."""
        ((last,),) = self._rows("SELECT max(number) FROM erasures")
        return cast("int | None", last) or 0

    def wrapped_otherwise(self, key_id: str, most: int, after: bytes = b"") -> Sequence[StoredPlayer]:
        """See `Vault`."""
        statement = f"SELECT {rows.PLAYER} FROM players WHERE key_id <> ? AND token > ? ORDER BY token LIMIT ?"  # noqa: S608 # our names
        return [rows.player(row) for row in self._rows(statement, key_id, after, most)]

    def players_by_key(self) -> Mapping[str, int]:
        """See `Vault`."""
        found = self._rows("SELECT key_id, count(*) FROM players GROUP BY key_id ORDER BY key_id")
        return dict(cast("Sequence[tuple[str, int]]", found))
