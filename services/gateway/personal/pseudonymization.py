"""Takes personal data out of events: the player's name becomes a pseudonym, the rest is encrypted for the vault."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from sys import getsizeof

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from gamelake.privacy.vault.secrecy import PlayerKey
from gamelake.privacy.vault.vault import Erasure, SealedData
from services.gateway.personal.fields import PersonalFieldExtractor, PersonalFields, PersonalValues

# A player has a device or two and one e-mail address. More values are written to the vault again, which knows them.
_MAX_STORED = 8
# What a player has written comes once; addresses and names are shorter, and come again.
_MAX_STORED_BYTES = 1024
# What a player takes in memory besides the name, and a set of values besides their texts; measured with tracemalloc.
PLAYER_BYTES, STORED_BYTES = 800, 256
# The number of steps in which the cache's order of use is kept.
_AGES = 8
# Erased players whose keys may still be on their way here from the vault.
_MAX_ERASED = 10_000


class Player:
    """A player in memory, and which personal values of the player the vault is known to have.

    Attributes:
        size: the memory that the player takes in the cache, in bytes.
    """

    __slots__ = ("age", "key", "name_size", "pseudonym", "size", "stored")

    def __init__(self, key: PlayerKey, name: str) -> None:
        self.key = key
        self.pseudonym = key.pseudonym
        self.age = -1
        self.name_size = getsizeof(name)
        self.size = PLAYER_BYTES + self.name_size
        # Read for each event, hence no property.
        self.stored: frozenset[PersonalValues] = frozenset()

    def mark_stored(self, values: PersonalValues) -> None:
        """Note that the vault has these values; long ones are not remembered."""
        if sum(map(len, values)) > _MAX_STORED_BYTES:
            return
        self.stored = frozenset([values]) if len(self.stored) >= _MAX_STORED else self.stored | {values}
        texts = sum(getsizeof(text) for stored in self.stored for text in stored)
        self.size = PLAYER_BYTES + self.name_size + STORED_BYTES * len(self.stored) + texts


class PlayerCache:
    """The players that were used last, in at most `max_bytes` of memory; for one thread.

    Attributes:
        last_erasure: the number of the last erasure that was applied; None until it was asked for.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = self._added = self._age = 0
        self._players: OrderedDict[tuple[str, str], Player] = OrderedDict()
        self._by_pseudonym: dict[str, tuple[str, str]] = {}
        self._erased: OrderedDict[str, None] = OrderedDict()
        self.last_erasure: int | None = None

    @property
    def size(self) -> int:
        """The memory that the players take, in bytes."""
        return self._bytes

    def find(self, game: str, names: Sequence[str]) -> list[Player | None]:
        """Find the cached player of each name; None where the vault has to be asked."""
        found = list(map(self._players.get, zip(repeat(game), names)))
        # Once in an age: it costs more than finding the player.
        age = self._age
        aged = [player is not None and player.age != age for player in found]
        for name, player in compress(zip(names, found, strict=True), aged):
            player.age = age  # type: ignore[union-attr] # see above
            self._players.move_to_end((game, name))
        return found

    def add(self, game: str, keys: Mapping[str, PlayerKey]) -> Mapping[str, Player]:
        """Add players by their names in the game, evict those that were not used for longest, and give those added."""
        players = {name: Player(key, name) for name, key in keys.items()}
        self._added += sum(player.size for player in players.values())
        self._age = self._added // max(self._max_bytes // _AGES, 1)
        for name, player in players.items():
            # A key that was read before the player's erasure and comes after it is used for this request alone.
            if player.pseudonym not in self._erased:
                self._evict((game, name))
                self._players[game, name] = player
                self._by_pseudonym[player.pseudonym] = (game, name)
                self._bytes += player.size
        self._evict_oldest()
        return players

    def mark_stored(self, player: Player, values: PersonalValues) -> None:
        """Note that the vault has these values of a player, who may have been evicted meanwhile."""
        before = player.size
        player.mark_stored(values)
        if self._players.get(self._by_pseudonym.get(player.pseudonym, ("", ""))) is player:
            self._bytes += player.size - before
            self._evict_oldest()

    def _evict_oldest(self) -> None:
        while self._bytes > self._max_bytes:
            self._evict(next(iter(self._players)))

    def _evict(self, place: tuple[str, str]) -> None:
        player = self._players.pop(place, None)
        if player is not None:
            self._by_pseudonym.pop(player.pseudonym, None)
            self._bytes -= player.size

    def evict_erased(self, erasures: Sequence[Erasure]) -> None:
        """Evict players that were erased from the vault."""
        for erasure in erasures:
            self.last_erasure = erasure.number
            self._erased[erasure.pseudonym] = None
            place = self._by_pseudonym.get(erasure.pseudonym)
            if place is not None:
                self._evict(place)
        while len(self._erased) > _MAX_ERASED:
            self._erased.popitem(last=False)


@dataclass(frozen=True, slots=True)
class PersonalData:
    """Personal data of one event in plain text, and its player; it never leaves the process in this form.

    Attributes:
        data: a serialized event that has the personal fields alone.
        values: the same as a tuple, by which the cache knows what the vault has.
    """

    player: Player
    data: bytes
    values: PersonalValues = ()

    def __repr__(self) -> str:
        """Without the data, which could appear in a traceback."""
        return f"PersonalData(player={self.player.key!r})"

    def sealed(self) -> SealedData:
        """Return the data as the vault gets it: encrypted with the player's key."""
        return _sealed(self.player.key, self.data)


@dataclass(frozen=True, slots=True)
class UnownedData:
    """Personal data of one event whose player has to be resolved by the vault first; otherwise as `PersonalData`.

    Attributes:
        name: the player's name in the game.
    """

    name: str
    data: bytes
    values: PersonalValues = ()

    def __repr__(self) -> str:
        """Without the name and the data, which could appear in a traceback."""
        return "UnownedData()"

    def sealed(self, key: PlayerKey) -> SealedData:
        """Return the data as the vault gets it: encrypted with the key of the player, once it is known."""
        return _sealed(key, self.data)


def _sealed(key: PlayerKey, data: bytes) -> SealedData:
    return SealedData(pseudonym=key.pseudonym, fingerprint=key.fingerprint(data), sealed=key.seal(data))


class Pseudonymizer:
    """Takes the personal fields out of events of one contract."""

    def __init__(self, event: Descriptor, fields: PersonalFields) -> None:
        self.fields = fields
        self.extractor = PersonalFieldExtractor(event, fields.vault)

    def player_of(self, event: Message) -> str:
        """Return the player's name in the game."""
        name: str = getattr(event, self.fields.player)
        return name

    def pseudonymize(
        self, events: Sequence[Message], personal: Sequence[PersonalValues], owners: Sequence[Player]
    ) -> list[PersonalData]:
        """Replace the names in events by pseudonyms; return what the vault does not have yet, without duplicates.

        No event may be sent on before the vault has stored the result.

        Args:
            events: changed in place; `extractor` has removed their personal fields.
            personal: the personal values of each event.
            owners: the player of each event.
        """
        for event, player in zip(events, owners, strict=True):
            setattr(event, self.fields.player, player.pseudonym)
        return self.unstored(owners, personal)

    def unstored(self, owners: Iterable[Player], values: Iterable[PersonalValues]) -> list[PersonalData]:
        """Return the events' personal values that the vault does not have yet, without duplicates.

        Args:
            owners: the player of each event.
            values: the personal values of each event, in the same order.
        """
        empty = self.extractor.empty
        new = {
            (player.pseudonym, each): (player, each)
            for player, each in zip(owners, values, strict=True)
            if each not in player.stored and each != empty
        }
        return [PersonalData(player, self.extractor.as_event(each), each) for player, each in new.values()]

    def unowned(
        self, names: Iterable[str], values: Iterable[PersonalValues], unknown: Iterable[str]
    ) -> list[UnownedData]:
        """Return the personal values of the events of unknown players, without duplicates.

        Args:
            names: the name in the game of each event's player.
            values: the personal values of each event, in the same order.
            unknown: the names of the players that the vault has to resolve.
        """
        empty, wanted = self.extractor.empty, frozenset(unknown)
        new = {pair: None for pair in zip(names, values, strict=True) if pair[0] in wanted and pair[1] != empty}
        return [UnownedData(name, self.extractor.as_event(each), each) for name, each in new]
