"""The vault as requests use it: many requests share one transaction, and players are cached."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from gamelake.model.logs import event_logger
from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.privacy.vault.secrecy import PlayerKey, TamperedError, UnknownKeyError
from gamelake.privacy.vault.vault import (
    Erasure,
    SealedData,
    StoredPlayer,
    Vault,
    VaultRefusedError,
    VaultUnavailableError,
)
from services.gateway import metrics
from services.gateway.errors import UnavailableError
from services.gateway.events.batching import ThreadBatcher
from services.gateway.personal.pseudonymization import PersonalData, Player, PlayerCache, UnownedData

log = event_logger(__name__)

# What the rows of one transaction take, and a row without its data: a token, a pseudonym, a key, a fingerprint.
_BATCH_BYTES, _ROW_BYTES = 2**20, 512


@dataclass(frozen=True, slots=True)
class _VaultRequest:
    """The players of one request that the vault resolves, by the tokens of their names, and the data that it stores."""

    game: str
    tokens: Mapping[str, bytes] = field(default_factory=dict)
    unowned_data: Sequence[UnownedData] = ()
    personal_data: Sequence[PersonalData] = ()

    @property
    def size(self) -> int:
        """The bytes of its rows."""
        data = [len(each.data) for each in self.unowned_data] + [len(each.data) for each in self.personal_data]
        return _ROW_BYTES * (len(self.tokens) + len(data)) + sum(data)


_Keys = Mapping[str, PlayerKey]
# A player's key, or why it can't be read.
_KeysByToken = dict[bytes, PlayerKey | TamperedError]


class BatchedVault:
    """Combines the concurrent requests of one event loop into batches for the vault, which run on another thread."""

    def __init__(self, vault: Vault, keyring: VaultKeyring) -> None:
        self._vault = vault
        self._keyring = keyring
        self._batcher: ThreadBatcher[_VaultRequest, _Keys] = ThreadBatcher(self._run, max_batch=_BATCH_BYTES)

    async def keys_of(self, game: str, names: Sequence[str], data: Sequence[UnownedData] = ()) -> _Keys:
        """Return the players' keys by name.

        A new player gets a key, which the vault has then stored with the players' data.

        Raises:
            VaultUnavailableError: the vault does not answer.
            TamperedError: a player's row was changed, or its key-encryption key is missing.
        """
        keys = self._keyring.now
        tokens = {name: keys.token(game, name) for name in names}
        return await self._submit(_VaultRequest(game, tokens, unowned_data=data))

    async def store(self, game: str, personal_data: Sequence[PersonalData]) -> None:
        """Store data; returns when the vault has it.

        Raises:
            VaultUnavailableError: the vault does not answer.
        """
        await self._submit(_VaultRequest(game, personal_data=personal_data))

    def erasures_after(self, number: int) -> Sequence[Erasure]:
        """Return the erasures with a higher number; blocks.

        Raises:
            VaultUnavailableError: the vault does not answer.
        """
        return self._vault.erasures_after(number)

    def last_erasure(self) -> int:
        """Return the number of the newest erasure; blocks.

        Raises:
            VaultUnavailableError: the vault does not answer.
        """
        return self._vault.last_erasure()

    def destroy_remains(self) -> None:
        """Destroy what erasures have not been able to destroy yet; may block for long, and is called repeatedly."""
        try:
            self._vault.destroy_remains()
        except VaultUnavailableError as error:
            log.warning("remains_not_destroyed", error=error, action="tries again")

    def close(self) -> None:
        """Close the vault."""
        self._vault.close()

    async def _submit(self, request: _VaultRequest) -> _Keys:
        return await self._batcher.submit(request, request.size)

    def _run(self, requests: Sequence[_VaultRequest]) -> Sequence[_Keys | Exception]:
        """One batch. If the vault refuses a row, each request runs alone, so that only its own request fails."""
        self._keyring.refresh()
        try:
            return self._run_together(requests)
        except VaultRefusedError:
            return [self._run_alone(request) for request in requests]

    def _run_alone(self, request: _VaultRequest) -> _Keys | Exception:
        try:
            return self._run_together([request])[0]
        except VaultUnavailableError as error:
            return error

    def _run_together(self, requests: Sequence[_VaultRequest]) -> list[_Keys | Exception]:
        games = {token: request.game for request in requests for token in request.tokens.values()}
        stored = self._vault.find(list(games)) if games else {}
        made = {token: PlayerKey.new(game) for token, game in games.items() if token not in stored}
        keys: _KeysByToken = {**{token: self._key_of(row) for token, row in stored.items()}, **made}
        data = [each.sealed() for request in requests for each in request.personal_data]
        data += _sealed(requests, keys)
        if made or data:
            taken = self._vault.take([self._row(token, key) for token, key in made.items()], data)
            # The vault did not take the data of players that another process was faster to add, under another key.
            added = {token: self._key_of(row) for token, row in taken.items() if row.pseudonym != made[token].pseudonym}
            if again := list(_sealed(requests, added)):
                self._vault.keep(again)
            keys |= added
        return [_result(request, keys) for request in requests]

    def _row(self, token: bytes, key: PlayerKey) -> StoredPlayer:
        keys = self._keyring.now
        return StoredPlayer(
            token=token,
            game=key.game,
            pseudonym=key.pseudonym,
            key_id=keys.current,
            wrapped_key=keys.wrap(key, token),
        )

    def _key_of(self, row: StoredPlayer) -> PlayerKey | TamperedError:
        try:
            return self._unwrapped(row)
        except TamperedError as error:
            return error

    def _unwrapped(self, row: StoredPlayer) -> PlayerKey:
        try:
            return self._keyring.now.unwrap(row)
        except UnknownKeyError:
            # Since the batch began the keys were rotated, and this row was wrapped with a new one.
            self._keyring.refresh()
            return self._keyring.now.unwrap(row)


def _sealed(requests: Sequence[_VaultRequest], keys: _KeysByToken) -> Iterator[SealedData]:
    """The data of those players whose keys are given, encrypted."""
    for request in requests:
        for each in request.unowned_data:
            key = keys.get(request.tokens[each.name])
            if isinstance(key, PlayerKey):
                yield each.sealed(key)


def _result(request: _VaultRequest, keys: _KeysByToken) -> _Keys | TamperedError:
    found: dict[str, PlayerKey] = {}
    for name, token in request.tokens.items():
        key = keys[token]
        if isinstance(key, TamperedError):
            return key
        found[name] = key
    return found


class PlayerStore:
    """Players and their personal data, through a cache: the vault is asked on other threads than the event loop's."""

    def __init__(self, cache: PlayerCache, vault: BatchedVault) -> None:
        self._cache = cache
        self._vault = vault
        self._destroying: asyncio.Task[None] | None = None

    @property
    def cached_bytes(self) -> int:
        """The memory of the cached players."""
        return self._cache.size

    async def resolve(self, game: str, names: Sequence[str], data: Sequence[UnownedData] = ()) -> Mapping[str, Player]:
        """Resolve players that are not in the cache, by name.

        New ones are added to the vault, which stores their data too.

        Raises:
            VaultUnavailableError: the vault does not answer.
            TamperedError: a player's row in the vault was changed.
        """
        await self._last_erasure()
        players = self._cache.add(game, await self._vault.keys_of(game, names, data))
        for each in data:
            self._cache.mark_stored(players[each.name], each.values)
        return players

    async def store(self, game: str, personal_data: Sequence[PersonalData]) -> None:
        """Store personal data; returns when the vault has it, and the events that it is from may be sent.

        Raises:
            VaultUnavailableError: the vault does not answer.
        """
        await self._vault.store(game, personal_data)
        for each in personal_data:
            self._cache.mark_stored(each.player, each.values)

    async def apply_erasures(self) -> None:
        """Evict players that were erased from the vault, and destroy their remains; to be called repeatedly.

        Raises:
            VaultUnavailableError: the vault does not answer.
        """
        if self._destroying is None or self._destroying.done():
            self._destroying = asyncio.create_task(asyncio.to_thread(self._vault.destroy_remains))
        last = await self._last_erasure()
        self._cache.evict_erased(await asyncio.to_thread(self._vault.erasures_after, last))

    async def _last_erasure(self) -> int:
        """Return the number of the last erasure that the cache has applied.

        An empty cache needs no erasures: the first call asks for the newest number, before any player is read.
        """
        if self._cache.last_erasure is None:
            newest = await asyncio.to_thread(self._vault.last_erasure)
            # Another request may have been faster. A lower number applies more erasures, which does no harm.
            if self._cache.last_erasure is None:
                self._cache.last_erasure = newest
        return self._cache.last_erasure

    def close(self) -> None:
        """Close the vault."""
        self._vault.close()


@contextmanager
def vault_failures_as_unavailable() -> Iterator[None]:
    """Refuse the request with 503 if the vault fails within the block.

    Raises:
        UnavailableError: it did.
    """
    try:
        yield
    except VaultUnavailableError as error:
        log.warning("vault_unavailable", error=error, action="refuses the request with 503")
        metrics.count_vault_failure()
        raise UnavailableError("the vault does not answer; send again later") from None
    except TamperedError:
        log.exception(
            "vault_row_unreadable",
            reason="the row was changed, or its key-encryption key is missing",
            action="refuses the request with 503",
        )
        raise UnavailableError("the vault can't be read; send again later") from None
