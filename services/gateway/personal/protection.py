"""Takes what is personal out of events: the player's name becomes a pseudonym, the rest goes to the vault, sealed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from gamelake.vault.vault import SealedData
from services.gateway.personal.cutting import CutOut, Cutter
from services.gateway.personal.fields import PersonalFields
from services.gateway.personal.players import Player


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
