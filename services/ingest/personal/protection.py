"""Takes what is personal out of events: the player's name becomes a pseudonym, the rest goes to the vault, sealed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.message import Message

from services.ingest.personal.fields import FieldPath, PersonalFields
from services.ingest.personal.players import Player
from services.ingest.personal.vault import SealedData


@dataclass(frozen=True, slots=True)
class Belonging:
    """Personal data of one event, in the clear, and whose it is; it never leaves the process like this."""

    player: Player
    data: bytes

    def __repr__(self) -> str:
        """Without the data: it could stand in a traceback."""
        return f"Belonging(player={self.player.key!r})"

    def sealed(self) -> SealedData:
        """What the vault gets of it."""
        key = self.player.key
        return SealedData(pseudonym=key.pseudonym, fingerprint=key.fingerprint(self.data), sealed=key.seal(self.data))


class Protection:
    """Knows which fields of an event's class are personal."""

    def __init__(self, event: type[Message], fields: PersonalFields) -> None:
        self._event = event
        self._fields = fields

    def player_of(self, event: Message) -> str:
        """The game's own name for the player."""
        name: str = getattr(event, self._fields.player)
        return name

    def protect(self, events: Sequence[Message], players: Mapping[str, Player]) -> list[Belonging]:
        """Change the events so that nothing personal is left; gives what the vault has yet to keep, each once.

        No event may leave the service before the vault has what was cut out of it.
        """
        cut_out: dict[tuple[str, bytes], Belonging] = {}
        for event in events:
            player = players[self.player_of(event)]
            setattr(event, self._fields.player, player.key.pseudonym)
            data = self._cut_out(event)
            if data and data not in player.kept:
                cut_out[player.key.pseudonym, data] = Belonging(player, data)
        return list(cut_out.values())

    def _cut_out(self, event: Message) -> bytes:
        """The personal fields, as an event that has nothing else, and out of this one; nothing if there are none."""
        found = [
            (path, holder)
            for path in self._fields.vault
            if (holder := path.holder(event)) is not None and is_set(holder, path.name)
        ]
        if not found:
            return b""
        cut = self._event()
        for path, holder in found:
            _move(holder, cut, path)
        return cut.SerializeToString(deterministic=True)


def is_set(holder: Message, name: str) -> bool:
    """Whether a message has something in a field."""
    value = getattr(holder, name)
    return holder.HasField(name) if isinstance(value, Message) else bool(value)


def _move(holder: Message, target: Message, path: FieldPath) -> None:
    """Take one field out of its holder and put it at its place in another event."""
    for parent in path.parents:
        target = getattr(target, parent)
    value = getattr(holder, path.name)
    if isinstance(value, Message):
        getattr(target, path.name).CopyFrom(value)
    else:
        setattr(target, path.name, value)
    holder.ClearField(path.name)
