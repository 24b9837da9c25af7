"""The vault as requests use it: many requests share one transaction, and known players are cached."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.privacy.vault.secrecy import PlayerKey, TamperedError, UnknownKeyError
from gamelake.privacy.vault.vault import Erasure, StoredPlayer, Vault, VaultRefusedError, VaultUnavailableError
from services.gateway import metrics
from services.gateway.batching import Rounds, TooManyWaitError
from services.gateway.errors import NotTakenError
from services.gateway.personal.pseudonymization import Belonging, Player, Players

log = logging.getLogger(__name__)

# Rows of a transaction, and those that may wait: a row is some hundred bytes.
_ROWS, _WAITING_ROWS = 2_000, 50_000


@dataclass(frozen=True, slots=True)
class _Wish:
    """What one request wants of the vault: players by the tokens of their names, or data to be kept."""

    game: str
    tokens: Mapping[str, bytes] = field(default_factory=dict)
    belongings: Sequence[Belonging] = ()


_Players = Mapping[str, PlayerKey]


class Safekeeping:
    """Asks the vault for all who wait at once, on another thread than theirs."""

    def __init__(self, vault: Vault, keyring: VaultKeyring) -> None:
        self._vault = vault
        self._keyring = keyring
        self._rounds: Rounds[_Wish, _Players] = Rounds(self._grant, most=_ROWS, most_waiting=_WAITING_ROWS)

    async def keys_of(self, game: str, names: Sequence[str]) -> _Players:
        """The players' keys, from the vault or new ones, which the vault then has.

        Raises:
            VaultUnavailableError: the vault does not answer.
            TamperedError: a player's row was changed, or its key-encryption key is not there.
        """
        keys = self._keyring.now
        return await self._ask(_Wish(game, tokens={name: keys.token(game, name) for name in names}), len(names))

    async def keep(self, game: str, belongings: Sequence[Belonging]) -> None:
        """Return when the vault has the data.

        Raises:
            VaultUnavailableError: the vault does not answer.
        """
        await self._ask(_Wish(game, belongings=belongings), len(belongings))

    def erasures_after(self, number: int) -> Sequence[Erasure]:
        """Whom the vault has forgotten since; to be asked on a thread that may wait.

        Raises:
            VaultUnavailableError: the vault does not answer.
        """
        return self._vault.erasures_after(number)

    def destroy_remains(self) -> None:
        """Destroy what somebody's erasure could not destroy yet; on a thread that may wait long, again and again."""
        try:
            self._vault.destroy_remains()
        except VaultUnavailableError as error:
            log.warning("what forgotten players have left is not destroyed yet: %s", error)

    def close(self) -> None:
        """Let go of the vault."""
        self._vault.close()

    async def _ask(self, wish: _Wish, rows: int) -> _Players:
        try:
            return await self._rounds.ask(wish, rows)
        except TooManyWaitError:
            raise VaultUnavailableError("the vault is slower than what is asked of it") from None

    def _grant(self, wishes: Sequence[_Wish]) -> Sequence[_Players | Exception]:
        """One round. A row that the vault won't have is its own request's trouble: then each goes alone."""
        self._keyring.refresh()
        try:
            return self._together(wishes)
        except VaultRefusedError:
            return [self._alone(wish) for wish in wishes]

    def _alone(self, wish: _Wish) -> _Players | Exception:
        try:
            return self._together([wish])[0]
        except VaultUnavailableError as error:
            return error

    def _together(self, wishes: Sequence[_Wish]) -> list[_Players | Exception]:
        games = {token: wish.game for wish in wishes for token in wish.tokens.values()}
        stored = dict(self._vault.find(list(games))) if games else {}
        made = {token: PlayerKey.new(game) for token, game in games.items() if token not in stored}
        data = [belonging.sealed() for wish in wishes for belonging in wish.belongings]
        if made or data:
            rows = [self._row(token, key) for token, key in made.items()]
            stored |= self._vault.take(rows, data)
        return [self._answer(wish, stored, made) for wish in wishes]

    def _row(self, token: bytes, key: PlayerKey) -> StoredPlayer:
        keys = self._keyring.now
        return StoredPlayer(
            token=token,
            game=key.game,
            pseudonym=key.pseudonym,
            key_id=keys.current,
            wrapped_key=keys.wrap(key, token),
        )

    def _answer(
        self, wish: _Wish, stored: Mapping[bytes, StoredPlayer], made: Mapping[bytes, PlayerKey]
    ) -> _Players | Exception:
        try:
            return {name: self._key(stored[token], made.get(token)) for name, token in wish.tokens.items()}
        except TamperedError as error:
            return error

    def _key(self, row: StoredPlayer, made: PlayerKey | None) -> PlayerKey:
        """The key of a row: the one that was just made for it, unless another process was first."""
        if made is not None and made.pseudonym == row.pseudonym:
            return made
        try:
            return self._keyring.now.unwrap(row)
        except UnknownKeyError:
            # The keys were changed, and this row wrapped anew, since the round began.
            self._keyring.refresh()
            return self._keyring.now.unwrap(row)


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


log = logging.getLogger(__name__)


@contextmanager
def vault_asked() -> Iterator[None]:
    """Have the same request sent again when the vault fails within the block.

    Raises:
        NotTakenError: it did.
    """
    try:
        yield
    except VaultUnavailableError as error:
        log.warning("the vault does not answer: %s", error)
        metrics.count_vault_failure()
        raise NotTakenError("the vault does not answer") from None
    except TamperedError:
        log.exception("the vault is not what was written")
        raise NotTakenError("the vault can't be read") from None
