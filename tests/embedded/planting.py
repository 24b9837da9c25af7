"""Secrets, planted where players have theirs, and all the ways in which games send them."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Self

from tests.embedded.gateway import Gateway, Reply, body_of, events
from tests.embedded.parcels import as_protobuf, packed

GAME = "archery_duel"
PROTOBUF = "application/x-protobuf"
_GROUP = 4


@dataclass(frozen=True, slots=True)
class Person:
    """All that is personal of one player; each text is nobody else's."""

    gamer_id: str
    device_id: str
    email: str
    ip_address: str
    player_name: str
    free_text: str

    @classmethod
    def somebody(cls) -> Self:
        """A person whom nobody has seen before."""
        player, device, mail, address, name, text = (uuid.uuid4().hex for _ in range(6))
        groups = [address[start : start + _GROUP] for start in range(0, 6 * _GROUP, _GROUP)]
        return cls(
            gamer_id=f"player/{player}",
            device_id=device,
            email=f"{mail}@example.org",
            ip_address=f"2001:db8:{':'.join(groups)}",
            player_name=f"Søren {name}",
            free_text=f"call “{text}”",
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts to look for."""
        return astuple(self)

    def event(self) -> dict[str, object]:
        """An event that tells everything."""
        personal = {name: getattr(self, name) for name in ("email", "ip_address", "player_name", "free_text")}
        params = {"device_id": self.device_id, "level": 7}
        return events(1, gamer_id=self.gamer_id, event_params=params, personal=personal)[0]


Way = Callable[[Gateway, Sequence[Person]], Reply]


def _told(people: Sequence[Person]) -> list[dict[str, object]]:
    return [person.event() for person in people]


def _in_json(encoding: str) -> Way:
    return lambda gateway, people: gateway.send(packed(body_of(_told(people)), encoding), content_encoding=encoding)


def _in_protobuf(encoding: str) -> Way:
    return lambda gateway, people: gateway.send(
        packed(as_protobuf(_told(people)), encoding), content_type=PROTOBUF, content_encoding=encoding
    )


def _with(change: Callable[[Person], dict[str, object]]) -> Way:
    """Events that are rejected, each for what the change does to it."""
    return lambda gateway, people: gateway.send(body_of([person.event() | change(person) for person in people]))


ACCEPTED: tuple[Way, ...] = (_in_json(""), _in_json("gzip"), _in_json("zstd"), _in_protobuf(""), _in_protobuf("zstd"))
REJECTED: tuple[Way, ...] = (
    _with(lambda person: {"event_name": ""}),
    _with(lambda person: {"event_time": person.email}),
    _with(lambda person: {person.player_name: person.free_text}),
    _with(lambda person: {"event_params": {"level": person.device_id}}),
    _with(lambda person: {"game_name": person.player_name}),
)
REFUSED: tuple[Way, ...] = (
    lambda gateway, people: gateway.send(body_of(_told(people)), gamelake_signature="0" * 64),
    lambda gateway, people: gateway.send(body_of(_told(people)) + b"}"),
    lambda gateway, people: gateway.send(body_of(_told(people)), content_encoding="gzip"),
    lambda gateway, people: gateway.send(as_protobuf(_told(people))[:-1], content_type=PROTOBUF),
    lambda gateway, people: gateway.send(body_of(_told(people)), gamelake_key=people[0].email),
    lambda gateway, people: gateway.send(body_of(_told(people) * 300)),
)
