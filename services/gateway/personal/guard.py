"""Knows the players of events, and has the vault keep what is personal before an event leaves the service."""

import asyncio
from collections.abc import Mapping, Sequence

from services.gateway.personal.players import Player, Players
from services.gateway.personal.protection import Belonging
from services.gateway.personal.safekeeping import Safekeeping


class Guard:
    """Asked by requests, on one event loop; it asks the vault on other threads."""

    def __init__(self, players: Players, safekeeping: Safekeeping) -> None:
        self._players = players
        self._safekeeping = safekeeping
        self._destroying: asyncio.Task[None] | None = None

    def known(self, game: str, name: str) -> Player | None:
        """A player whom the vault need not be asked for."""
        return self._players.known(game, name)

    async def introduce(self, game: str, names: Sequence[str]) -> Mapping[str, Player]:
        """Players who were not known, from the vault or new ones.

        Raises:
            VaultUnavailableError: the vault does not answer.
            TamperedError: a player's row in the vault is not what was written.
        """
        return self._players.remember(game, await self._safekeeping.keys_of(game, names))

    async def keep(self, game: str, belongings: Sequence[Belonging]) -> None:
        """Return when the vault has what was cut out of events, which must not leave the service before.

        Raises:
            VaultUnavailableError: the vault does not answer.
        """
        await self._safekeeping.keep(game, belongings)
        for belonging in belongings:
            belonging.player.is_kept(belonging.cut_out)

    async def let_go_of_the_erased(self) -> None:
        """Forget whom the vault has forgotten, and see that nothing is left of them; to be called again and again.

        Raises:
            VaultUnavailableError: the vault does not answer.
        """
        if self._destroying is None or self._destroying.done():
            self._destroying = asyncio.create_task(asyncio.to_thread(self._safekeeping.destroy_remains))
        last = self._players.last_erasure
        self._players.let_go(await asyncio.to_thread(self._safekeeping.erasures_after, last))

    def close(self) -> None:
        """Let go of the vault."""
        self._safekeeping.close()
