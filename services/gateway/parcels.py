"""The events of one request on their way through the service, and what becomes of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gamelake.contracts.games import GameSpec
from services.gateway.admission import Form
from services.gateway.personal.players import Player
from services.gateway.personal.protection import Belonging
from services.gateway.producing import LARGEST_VALUE_BYTES, Record
from services.gateway.rejections import Reason, Rejection


@dataclass(frozen=True, slots=True)
class Parcel:
    """A request's events as they were written, and those of their players whom the vault was asked for."""

    game: GameSpec
    form: Form
    written: Sequence[Any]
    introduced: Mapping[str, Player] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ready:
    """What Kafka gets, once the vault has what belongs to players."""

    records: list[Record]
    rejections: list[Rejection]
    belongings: Sequence[Belonging]

    def without_large_records(self) -> "Ready":
        """The same, with the events rejected that Kafka would never take, however often they are sent."""
        if max([len(record["value"]) for record in self.records], default=0) <= LARGEST_VALUE_BYTES:
            return self
        rejected = {rejection.index for rejection in self.rejections}
        passed = [index for index in range(len(self.records) + len(rejected)) if index not in rejected]
        large = [
            Rejection(index, Reason.TOO_LARGE)
            for index, record in zip(passed, self.records, strict=True)
            if len(record["value"]) > LARGEST_VALUE_BYTES
        ]
        records = [record for record in self.records if len(record["value"]) <= LARGEST_VALUE_BYTES]
        return Ready(records, sorted([*self.rejections, *large], key=lambda each: each.index), self.belongings)


@dataclass(frozen=True, slots=True)
class Strangers:
    """Players whom the vault has to be asked for before anything can be made of their events."""

    names: Sequence[str]


Prepared = Ready | Strangers
