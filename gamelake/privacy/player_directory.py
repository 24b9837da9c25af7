"""Who a person is in a vault: found by the game's own name for the player, or by the pseudonym."""

from dataclasses import dataclass

from gamelake.model.errors import StartupError
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.vault import StoredPlayer, Vault


class UnknownPlayerError(StartupError):
    """There is no such player: there never was, or the player was forgotten already."""


@dataclass(frozen=True, slots=True)
class IdentifiedPlayer:
    """A player by game and pseudonym; `stored` is None for one who was forgotten before."""

    game: str
    pseudonym: str
    stored: StoredPlayer | None


@dataclass(frozen=True, slots=True)
class PlayerDirectory:
    """The players of one vault. Names are never printed."""

    vault: Vault
    keys: VaultKeys

    def by_name(self, game: str, name: str) -> IdentifiedPlayer:
        """The player whom a game knows by a name.

        Raises:
            UnknownPlayerError: the vault has no such player.
        """
        token = self.keys.token(game, name)
        stored = self.vault.find([token]).get(token)
        if stored is None:
            raise UnknownPlayerError(f"the vault has no player of {game} by that name, or no longer")
        return IdentifiedPlayer(game, stored.pseudonym, stored)

    def by_pseudonym(self, game: str, pseudonym: str) -> IdentifiedPlayer:
        """The player who has a pseudonym, or had it before being forgotten.

        Raises:
            UnknownPlayerError: nobody of this game ever had it.
        """
        stored = self.vault.named(pseudonym)
        erased = [each.game for each in self.vault.erasures_after(0) if each.pseudonym == pseudonym]
        games = [stored.game] if stored else erased
        if game not in games:
            raise UnknownPlayerError(f"nobody of {game} has or had the pseudonym {pseudonym}")
        return IdentifiedPlayer(game, pseudonym, stored)
