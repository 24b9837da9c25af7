"""Takes personal data out of events: the player's name becomes a pseudonym, the rest is encrypted for the vault."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from gamelake.privacy.vault.secrecy import PlayerKey
from gamelake.privacy.vault.vault import Erasure, SealedData
from services.gateway.personal.fields import CutOut, Cutter, PersonalFields

# A player has a device or two and one e-mail address; who has more is written to the vault again, which knows it.
_KEPT = 8
# How finely it is told who was seen longer ago, in parts of all who are remembered.
_AGES = 8
# Erased players whose keys may still be on their way here from the vault.
_ERASED = 10_000


class Player:
    """A player in memory, and which data of the player is known to be in the vault."""

    __slots__ = ("age", "kept", "key", "pseudonym")

    def __init__(self, key: PlayerKey) -> None:
        self.key = key
        self.pseudonym = key.pseudonym
        self.age = -1
        # Read for each event, hence no property.
        self.kept: frozenset[CutOut] = frozenset()

    def is_kept(self, cut_out: CutOut) -> None:
        """The vault has this."""
        self.kept = frozenset([cut_out]) if len(self.kept) >= _KEPT else self.kept | {cut_out}


class Players:
    """Remembers so many players, the ones that were seen last; on one thread alone."""

    def __init__(self, remembered: int) -> None:
        self._remembered = remembered
        self._newcomers = self._age = 0
        self._players: OrderedDict[tuple[str, str], Player] = OrderedDict()
        self._by_pseudonym: dict[str, tuple[str, str]] = {}
        self._erased: OrderedDict[str, None] = OrderedDict()
        self._last_erasure = 0

    @property
    def last_erasure(self) -> int:
        """The number of the last erasure that was let go of."""
        return self._last_erasure

    def known(self, game: str, name: str) -> Player | None:
        """A player that is remembered."""
        player = self._players.get((game, name))
        # Once in an age: it costs more than finding the player.
        if player is not None and player.age != self._age:
            player.age = self._age
            self._players.move_to_end((game, name))
        return player

    def remember(self, game: str, keys: Mapping[str, PlayerKey]) -> Mapping[str, Player]:
        """Keep players in memory, and let go of those that were not seen for longest; gives those that were named."""
        players = {name: Player(key) for name, key in keys.items()}
        self._newcomers += len(players)
        self._age = self._newcomers // max(self._remembered // _AGES, 1)
        for name, player in players.items():
            # Read before the erasure and come after it: for this once the player is what the vault said.
            if player.key.pseudonym not in self._erased:
                self._players[game, name] = player
                self._by_pseudonym[player.key.pseudonym] = (game, name)
        while len(self._players) > self._remembered:
            _, oldest = self._players.popitem(last=False)
            self._by_pseudonym.pop(oldest.key.pseudonym, None)
        return players

    def let_go(self, erasures: Sequence[Erasure]) -> None:
        """Forget players whom the vault has forgotten."""
        for erasure in erasures:
            self._last_erasure = erasure.number
            self._erased[erasure.pseudonym] = None
            place = self._by_pseudonym.pop(erasure.pseudonym, None)
            if place is not None:
                self._players.pop(place, None)
        while len(self._erased) > _ERASED:
            self._erased.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Belonging:
    """Personal data of one event, in the clear, and whose it is; it never leaves the process like this."""

    player: Player
    data: bytes
    cut_out: CutOut = ()

    def __repr__(self) -> str:
        """Without the data: it could stand in a traceback."""
        return f"Belonging(player={self.player.key!r})"

    def sealed(self) -> SealedData:
        """What the vault gets of it."""
        key = self.player.key
        return SealedData(pseudonym=key.pseudonym, fingerprint=key.fingerprint(self.data), sealed=key.seal(self.data))


class Protection:
    """Knows which fields of an event's class are personal."""

    def __init__(self, event: Descriptor, fields: PersonalFields) -> None:
        self._cutter = Cutter(event, fields.vault)
        self.fields = fields

    @property
    def cutter(self) -> Cutter:
        """What knows the fields that go to the vault."""
        return self._cutter

    def player_of(self, event: Message) -> str:
        """The game's own name for the player."""
        name: str = getattr(event, self.fields.player)
        return name

    def protect(self, events: Sequence[Message], players: Mapping[str, Player]) -> list[Belonging]:
        """Change the events so that nothing personal is left; gives what the vault has yet to keep, each once.

        No event may leave the service before the vault has what was cut out of it.
        """
        owners = [players[self.player_of(event)] for event in events]
        for event, player in zip(events, owners, strict=True):
            setattr(event, self.fields.player, player.pseudonym)
        return self.to_keep(owners, map(self._cutter.cut, events))

    def to_keep(self, owners: Iterable[Player], cut_outs: Iterable[CutOut]) -> list[Belonging]:
        """What the vault has yet to keep of what is cut out of events, each once."""
        nothing = self._cutter.nothing
        new = {
            (player.pseudonym, cut_out): (player, cut_out)
            for player, cut_out in zip(owners, cut_outs, strict=True)
            if cut_out not in player.kept and cut_out != nothing
        }
        return [Belonging(player, self._cutter.as_event(cut_out), cut_out) for player, cut_out in new.values()]
