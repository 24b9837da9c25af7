"""Stands between events and whatever leaves the service: nothing personal passes, and the vault comes first."""

import asyncio
from collections.abc import Mapping, Sequence

from google.protobuf.message import Message

from services.ingest.personal.players import Player, Players
from services.ingest.personal.protection import Belonging, Protection
from services.ingest.personal.vault import Vault


class Guard:
    """Protects the events of requests, on one event loop; the vault is asked on other threads."""

    def __init__(self, vault: Vault, players: Players, protection: Protection) -> None:
        self._vault = vault
        self._players = players
        self._protection = protection

    async def protect(self, game: str, events: Sequence[Message]) -> None:
        """Change the events so that nothing personal is left; returns when the vault has what was cut out.

        Raises:
            VaultUnavailableError: the vault does not answer; the events must not leave the service.
            TamperedError: a player's row in the vault is not what was written.
        """
        names = [self._protection.player_of(event) for event in events]
        belongings = self._protection.protect(events, await self._players_of(game, names))
        if belongings:
            await asyncio.to_thread(self._keep, belongings)
            for belonging in belongings:
                belonging.player.is_kept(belonging.data)

    async def let_go_of_the_erased(self) -> None:
        """Forget whom the vault has forgotten.

        Raises:
            VaultUnavailableError: the vault does not answer.
        """
        self._players.let_go(await asyncio.to_thread(self._players.erased_since))

    def close(self) -> None:
        """Let go of the vault."""
        self._vault.close()

    async def _players_of(self, game: str, names: Sequence[str]) -> Mapping[str, Player]:
        known: dict[str, Player] = {}
        for name in names:
            if name not in known and (player := self._players.known(game, name)) is not None:
                known[name] = player
        unknown = [name for name in dict.fromkeys(names) if name not in known]
        if unknown:
            found = await asyncio.to_thread(self._players.look_up, game, unknown)
            self._players.remember(game, found)
            known |= found
        return known

    def _keep(self, belongings: Sequence[Belonging]) -> None:
        self._vault.keep([belonging.sealed() for belonging in belongings])
