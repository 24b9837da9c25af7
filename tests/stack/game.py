"""A game that sends to the stack's gateway, and remembers what was acknowledged."""

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gamelake.contract.games import load_games
from services.gateway.authentication import Role, read_keys
from services.sdk import Credentials, HttpTransport, Reply, UnreachableError
from tests.stack.platform import ROOT, SECRETS
from tests.support.eventually import SHORTEST_PAUSE_SECONDS
from tools.stack import gateway_url

_PATIENCE = timedelta(seconds=30)
_AGAIN_FOR_SECONDS = 120
Event = dict[str, object]


def credentials_of(game: str, secrets: Path = SECRETS) -> Credentials:
    """The key that the stack has made for a game."""
    keys = read_keys(secrets / "ingest-keys/keys.yaml", load_games(ROOT / "contracts/games.yaml")).values()
    (key,) = (key for key in keys if key.game == game and key.role is Role.GAME)
    return Credentials(key.id, key.secrets[0])


def an_event(**fields: object) -> Event:
    now = datetime.now(UTC).isoformat()
    ids = {"event_id": str(uuid.uuid4()), "gamer_id": "p-1", "session_id": "s-1"}
    return ids | {"event_name": "tap", "event_time": now} | fields


@dataclass(slots=True)
class Game:
    """One game; `acknowledged` has the ids of all events that the gateway has said it has."""

    credentials: Credentials
    acknowledged: set[str] = field(default_factory=set)
    _transport: HttpTransport = field(default_factory=lambda: HttpTransport(gateway_url(), _PATIENCE))

    @classmethod
    def of(cls, name: str) -> "Game":
        return cls(credentials_of(name))

    def post(self, events: Sequence[Mapping[str, object]]) -> Reply:
        """Send once. Return the answer.

        Raises:
            UnreachableError: there is none.
        """
        body = json.dumps({"events": list(events)}).encode()
        headers = {"content-type": "application/json", **self.credentials.headers(body, time.time())}
        reply = self._transport.post(body, headers)
        if reply.status == 200:
            rejected = {each["index"] for each in json.loads(reply.body)["rejected"]}
            self.acknowledged |= {str(each["event_id"]) for at, each in enumerate(events) if at not in rejected}
        return reply

    def post_until_taken(self, events: Sequence[Mapping[str, object]]) -> int:
        """Send the same events until they are acknowledged, as an SDK does. Return how often that was."""
        latest = time.monotonic() + _AGAIN_FOR_SECONDS
        for attempt in range(1, 1_000_000):
            try:
                if self.post(events).status == 200:
                    return attempt
            except UnreachableError:
                pass
            assert time.monotonic() < latest, "the gateway took nothing"
            time.sleep(SHORTEST_PAUSE_SECONDS)
        raise AssertionError
