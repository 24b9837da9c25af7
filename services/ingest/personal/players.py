"""The players of running requests: found in the vault once, made when they are new, remembered for a while."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

from services.ingest.personal.secrecy import PlayerKey, VaultKeys
from services.ingest.personal.vault import Erasure, StoredPlayer, Vault

# A player has a device or two and one e-mail address; who has more is written to the vault again, which knows it.
_KEPT = 8


class Player:
    """A player in memory, and which data of the player is known to be in the vault."""

    __slots__ = ("_kept", "key")

    def __init__(self, key: PlayerKey) -> None:
        self.key = key
        self._kept: frozenset[bytes] = frozenset()

    @property
    def kept(self) -> frozenset[bytes]:
        """Data that the vault has."""
        return self._kept

    def is_kept(self, data: bytes) -> None:
        """The vault has this."""
        self._kept = frozenset([data]) if len(self._kept) >= _KEPT else self._kept | {data}


class Players:
    """Remembers so many players, the ones that were seen last.

    What asks the vault may run on any thread; what remembers, on one alone.
    """

    def __init__(self, vault: Vault, keys: VaultKeys, remembered: int) -> None:
        self._vault = vault
        self._keys = keys
        self._remembered = remembered
        self._players: OrderedDict[tuple[str, str], Player] = OrderedDict()
        self._by_pseudonym: dict[str, tuple[str, str]] = {}
        self._last_erasure = max((each.number for each in vault.erasures_after(0)), default=0)

    def known(self, game: str, name: str) -> Player | None:
        """A player that is remembered."""
        player = self._players.get((game, name))
        if player is not None:
            self._players.move_to_end((game, name))
        return player

    def look_up(self, game: str, names: Iterable[str]) -> Mapping[str, Player]:
        """Players that are not remembered, from the vault or new ones; asks the vault twice at most.

        Raises:
            VaultUnavailableError: the vault does not answer.
            TamperedError: a player's row was changed, or its key-encryption key is not there.
        """
        tokens = {name: self._keys.token(game, name) for name in names}
        stored = dict(self._vault.find(list(tokens.values())))
        missing = [token for token in tokens.values() if token not in stored]
        if missing:
            stored |= self._vault.add([self._made(game, token) for token in missing])
        return {name: Player(self._unwrapped(stored[token])) for name, token in tokens.items()}

    def remember(self, game: str, players: Mapping[str, Player]) -> None:
        """Keep players in memory, and let go of those that were not seen for longest."""
        for name, player in players.items():
            self._players[game, name] = player
            self._by_pseudonym[player.key.pseudonym] = (game, name)
        while len(self._players) > self._remembered:
            _, oldest = self._players.popitem(last=False)
            self._by_pseudonym.pop(oldest.key.pseudonym, None)

    def erased_since(self) -> Sequence[Erasure]:
        """Whom the vault has forgotten since the last erasure that was let go of; may run on another thread.

        Raises:
            VaultUnavailableError: the vault does not answer.
        """
        return self._vault.erasures_after(self._last_erasure)

    def let_go(self, erasures: Sequence[Erasure]) -> None:
        """Forget players whom the vault has forgotten."""
        for erasure in erasures:
            self._last_erasure = erasure.number
            place = self._by_pseudonym.pop(erasure.pseudonym, None)
            if place is not None:
                self._players.pop(place, None)

    def _made(self, game: str, token: bytes) -> StoredPlayer:
        key = PlayerKey.new(game)
        return StoredPlayer(
            token=token,
            game=game,
            pseudonym=key.pseudonym,
            key_id=self._keys.current,
            wrapped_key=self._keys.wrap(key, token),
        )

    def _unwrapped(self, stored: StoredPlayer) -> PlayerKey:
        return self._keys.unwrap(stored.game, stored.wrapped_key, stored.key_id, stored.token)
