"""Finds players in a vault: by the game's own name for the player, or by pseudonym."""

from dataclasses import dataclass

from gamelake.model.errors import StartupError
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.vault import StoredPlayer, Vault


class UnknownPlayerError(StartupError):
    """There is no such player: there never was, or the player was erased."""


@dataclass(frozen=True, slots=True)
class IdentifiedPlayer:
    """A player by game and pseudonym; `stored` is None if the player was erased before."""

    game: str
    pseudonym: str
    stored: StoredPlayer | None


@dataclass(frozen=True, slots=True)
class PlayerDirectory:
    """The players of one vault. Names are never printed."""

    vault: Vault
    keys: VaultKeys

    def by_name(self, game: str, name: str) -> IdentifiedPlayer:
        """Find a player by the game's own name.

        Raises:
            UnknownPlayerError: the vault has no such player.
        """
        token = self.keys.token(game, name)
        stored = self.vault.find([token]).get(token)
        if stored is None:
            raise UnknownPlayerError(f"the vault has no player of {game} by that name, or no longer")
        return IdentifiedPlayer(game, stored.pseudonym, stored)

    def by_pseudonym(self, game: str, pseudonym: str) -> IdentifiedPlayer:
        """Find a player by pseudonym, an erased one too.

        Raises:
            UnknownPlayerError: no player of this game has or had it.
        """
        stored = self.vault.named(pseudonym)
        erased = [each.game for each in self.vault.erasures_after(0) if each.pseudonym == pseudonym]
        games = [stored.game] if stored else erased
        if game not in games:
            raise UnknownPlayerError(f"no player of {game} has or had the pseudonym {pseudonym}")
        return IdentifiedPlayer(game, pseudonym, stored)
