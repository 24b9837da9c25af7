"""Event by event: how a few events are prepared, and those with something wrong, whose reason has to be told."""

from collections.abc import Sequence

from google.protobuf.message import Message

from services.gateway.admission import Admission
from services.gateway.encoding import Encoder
from services.gateway.parcels import Parcel, Prepared, Ready, Strangers
from services.gateway.personal.players import Player, Players
from services.gateway.personal.protection import Protection


class Singly:
    """Prepares one parcel after the other."""

    def __init__(self, admission: Admission, players: Players, protection: Protection, encoder: Encoder) -> None:
        self._admission = admission
        self._players = players
        self._protection = protection
        self._encoder = encoder

    def prepare(self, parcel: Parcel) -> Prepared:
        """Read, check, protect and encode the events of a parcel."""
        admitted = self._admission.admit(parcel.form, parcel.written, parcel.game)
        players = self._players_of(parcel, admitted.events)
        if isinstance(players, Strangers):
            return players
        belongings = self._protection.protect(admitted.events, players)
        return Ready(self._encoder.encode(admitted.events), admitted.rejections, belongings)

    def _players_of(self, parcel: Parcel, events: Sequence[Message]) -> dict[str, Player] | Strangers:
        return known_or_strangers(parcel, [self._protection.player_of(event) for event in events], self._players)


def known_or_strangers(parcel: Parcel, names: Sequence[str], players: Players) -> dict[str, Player] | Strangers:
    """The players of a parcel by name, or those of them that the vault has to be asked for."""
    game, introduced = parcel.game.name, parcel.introduced
    found = {name: introduced.get(name) or players.known(game, name) for name in dict.fromkeys(names)}
    strangers = [name for name, player in found.items() if player is None]
    if strangers:
        return Strangers(strangers)
    return found  # type: ignore[return-value] # none of them is None
