"""Request bodies with events of a game, made once; each has a place where a new player's name can be inserted."""

import json
import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass

from services.sdk.batches import delimited

JSON, PROTOBUF = "application/json", "application/x-protobuf"
PLAYERS = 20_000
# All names have this length, so that one can replace another in a finished body.
_NAME = "player-{:09d}"
_NEW_PLAYER = _NAME.format(999_999_999)
_EVENT_NAMES = ("level_completed", "level_failed", "ad_viewed", "item_crafted", "session_end")
_SESSION_STARTS, _PURCHASES, _SCORES, _EXPERIMENTS = 0.05, 0.03, 0.5, 0.2
_LEVELS, _SEED = 100, 7

Event = dict[str, object]


@dataclass(frozen=True, slots=True)
class Body:
    """A body in two parts, with a player's name between them."""

    content_type: str
    events: int
    before: bytes
    name: bytes
    after: bytes

    def original(self) -> bytes:
        """The body with a known player."""
        return self.before + self.name + self.after

    def with_new_player(self, number: int) -> bytes:
        """The body with one new player."""
        return self.before + _NAME.format(PLAYERS + number).encode() + self.after


class Bodies:
    """Makes bodies for one game; the events are the same in each run, except for their times."""

    def __init__(self, event: Descriptor, game_name: str) -> None:
        self._message = GetMessageClass(event)
        self._pool = event.file.pool
        self._game_name = game_name
        self._random = random.Random(_SEED)  # not a secret

    def make(self, content_type: str, bodies: int, events: int) -> list[Body]:
        """`bodies` bodies of `events` events, each of a random player."""
        serialize = {JSON: self._as_json, PROTOBUF: self._as_protobuf}[content_type]
        return [self._body(content_type, serialize, events) for _ in range(bodies)]

    def all_players(self, content_type: str, events: int) -> list[Body]:
        """Bodies that have each player once, with all personal data, to fill the caches."""
        serialize = {JSON: self._as_json, PROTOBUF: self._as_protobuf}[content_type]
        content = [[self._event(player, "session_start") for player in range(first, first + events)]
                   for first in range(0, PLAYERS, events)]  # fmt: skip
        return [Body(content_type, events, serialize(some), b"", b"") for some in content]

    def _body(self, content_type: str, serialize: Callable[[Sequence[Event]], bytes], events: int) -> Body:
        content = [self._any_event() for _ in range(events)]
        known = str(content[0]["gamer_id"])
        # The new player has the device of the known one, which is new data for the new player.
        before, _, after = serialize([content[0] | {"gamer_id": _NEW_PLAYER}, *content[1:]]).partition(
            _NEW_PLAYER.encode()
        )
        return Body(content_type, events, before, known.encode(), after)

    def _any_event(self) -> Event:
        start = self._random.random() < _SESSION_STARTS
        name = "session_start" if start else self._random.choice(_EVENT_NAMES)
        return self._event(self._random.randrange(PLAYERS), name)

    def _event(self, player: int, name: str) -> Event:
        chance = self._random.random
        now = datetime.now(UTC)
        params: Event = {
            "platform": ("ios", "android")[player % 2],
            "app_version": "4.12.0",
            "device_id": uuid.UUID(int=player * 7919).hex,
            "client_event_time": now.isoformat(timespec="seconds"),
            "level": self._random.randrange(_LEVELS),
            "country": ("DE", "US", "JP", "BR")[player % 4],
        }
        event: Event = {
            "event_id": str(uuid.UUID(int=self._random.getrandbits(128), version=4)),
            "event_name": name,
            "event_time": now.isoformat(),
            "game_name": self._game_name,
            "gamer_id": _NAME.format(player),
            "session_id": f"{self._random.getrandbits(64):016x}",
            "connection_type": "CONNECTION_TYPE_WIFI",
            "event_params": params,
        }
        if chance() < _SCORES:
            params["score_adjustment"] = self._random.randrange(-50, 500)
        if chance() < _EXPERIMENTS:
            event["experiment_ids"] = ["offers-2", "tutorial-b"]
        if name == "session_start":
            params |= {"game_keyword": "duel", "app_name": "archeryduel"}
            event["attributes"] = {"acquired": "organic", "locale": "de_DE"}
            event["personal"] = {"email": f"{player}@players.example", "ip_address": f"198.51.100.{player % 256}"}
        if chance() < _PURCHASES:
            params["amount"] = 4.99
            event["purchase"] = {"product_id": "gems_500", "currency": "USD", "price_micros": 4_990_000, "quantity": 1}
        return event

    def _as_json(self, events: Sequence[Event]) -> bytes:
        return json.dumps({"events": events}, separators=(",", ":")).encode()

    def _as_protobuf(self, events: Sequence[Event]) -> bytes:
        return b"".join(delimited(self._message_of(event)) for event in events)

    def _message_of(self, event: Event) -> bytes:
        # ParseDict accepts a 64-bit number, and does not change the dictionary.
        message = json_format.ParseDict(event, self._message(), descriptor_pool=self._pool)
        return message.SerializeToString()
