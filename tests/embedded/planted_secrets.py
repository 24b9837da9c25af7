"""Unique personal data of made-up players, and all the kinds of requests with which games send it."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Self

from tests.embedded.fuzzed_requests import as_protobuf, compressed
from tests.embedded.gateway import Gateway, Reply, body_of, events

GAME = "archery_duel"
PROTOBUF = "application/x-protobuf"
_GROUP = 4


@dataclass(frozen=True, slots=True)
class Person:
    """The personal data of one player; each text is unique."""

    gamer_id: str
    device_id: str
    email: str
    ip_address: str
    player_name: str
    free_text: str

    @classmethod
    def unique(cls) -> Self:
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
        return astuple(self)

    def event(self) -> dict[str, object]:
        """An event with all of the personal data."""
        personal = {name: getattr(self, name) for name in ("email", "ip_address", "player_name", "free_text")}
        params = {"device_id": self.device_id, "level": 7}
        return events(1, gamer_id=self.gamer_id, event_params=params, personal=personal)[0]


Way = Callable[[Gateway, Sequence[Person]], Reply]


def _events_of(people: Sequence[Person]) -> list[dict[str, object]]:
    return [person.event() for person in people]


def _in_json(encoding: str) -> Way:
    return lambda gateway, people: gateway.send(
        compressed(body_of(_events_of(people)), encoding), content_encoding=encoding
    )


def _in_protobuf(encoding: str) -> Way:
    return lambda gateway, people: gateway.send(
        compressed(as_protobuf(_events_of(people)), encoding), content_type=PROTOBUF, content_encoding=encoding
    )


def _with(change: Callable[[Person], dict[str, object]]) -> Way:
    """Events that are rejected for a change."""
    return lambda gateway, people: gateway.send(body_of([person.event() | change(person) for person in people]))


def _as_flags(body: Callable[[Person], dict[str, object]], flag: str = "") -> Way:
    """Evaluations of experiments for the last person."""
    return lambda gateway, people: gateway.evaluate(body(people[-1]), flag)


def _context(person: Person) -> dict[str, object]:
    return {"context": {"targetingKey": person.gamer_id, "country": person.email, person.device_id: person.free_text}}


EVALUATED: tuple[Way, ...] = (
    _as_flags(_context),
    _as_flags(_context, "unknown"),
    _as_flags(lambda person: {"context": {"targetingKey": {person.email: person.gamer_id}}}),
    _as_flags(lambda person: {"context": [person.gamer_id, person.email]}),
)
ACCEPTED: tuple[Way, ...] = (_in_json(""), _in_json("gzip"), _in_json("zstd"), _in_protobuf(""), _in_protobuf("zstd"))
REJECTED: tuple[Way, ...] = (
    _with(lambda person: {"event_name": ""}),
    _with(lambda person: {"event_time": person.email}),
    _with(lambda person: {person.player_name: person.free_text}),
    _with(lambda person: {"event_params": {"level": person.device_id}}),
    _with(lambda person: {"game_name": person.player_name}),
    # Not JSON: NaN.
    _with(lambda person: {"event_params": {"device_id": person.device_id, "amount": float("nan")}}),
)
REFUSED: tuple[Way, ...] = (
    lambda gateway, people: gateway.send(body_of(_events_of(people)), gamelake_signature="0" * 64),
    lambda gateway, people: gateway.send(body_of(_events_of(people)) + b"}"),
    lambda gateway, people: gateway.send(body_of(_events_of(people)), content_encoding="gzip"),
    lambda gateway, people: gateway.send(as_protobuf(_events_of(people))[:-1], content_type=PROTOBUF),
    lambda gateway, people: gateway.send(body_of(_events_of(people)), gamelake_key=people[0].email),
    lambda gateway, people: gateway.send(body_of(_events_of(people) * 300)),
)
