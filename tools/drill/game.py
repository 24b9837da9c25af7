"""A game that plays while things break: it sends each event until it is acknowledged, as the SDK does."""

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from threading import Event, Thread

from gamelake.contracts.games import load_games
from gamelake.naming import game_table
from services.gateway.authentication import Role, read_keys
from services.sdk import Credentials, HttpTransport, UnreachableError
from tools.embedded.service import REPOSITORY
from tools.stack import SECRETS, gateway_url

# The platform's own test events, which gold leaves out of what players did.
EVENT_NAME = "smoke_test"
_PATIENCE = timedelta(seconds=5)
_AT_ONCE = 20
_PAUSE_SECONDS = 0.5
_RETRY_SECONDS = 0.2


@dataclass(slots=True)
class Game:
    """One game of the contract; `acknowledged` has the ids of all events that the gateway has said it has."""

    name: str
    credentials: Credentials
    acknowledged: set[str] = field(default_factory=set)
    _transport: HttpTransport = field(default_factory=lambda: HttpTransport(gateway_url(), _PATIENCE))

    @classmethod
    def number(cls, number: int) -> "Game":
        """A game of the contract by its place there, with the key that the stack has made for it."""
        contract = load_games(REPOSITORY / "contracts/games.yaml")
        name = contract.games[number].name
        keys = read_keys(SECRETS / "ingest-keys", contract).values()
        (key,) = (key for key in keys if key.game == name and key.role is Role.GAME)
        return cls(name, Credentials(key.id, key.secrets[0]))

    @property
    def table(self) -> str:
        """Its silver table."""
        return game_table(self.name)

    def send(self, stop: Event, transport: HttpTransport | None = None) -> set[str]:
        """Send new events until they are acknowledged, or until told to stop; gives their ids."""
        now = datetime.now(UTC).isoformat()
        ids = [str(uuid.uuid4()) for _ in range(_AT_ONCE)]
        events = [{"event_id": each, "event_name": EVENT_NAME, "event_time": now, "gamer_id": "drill"} for each in ids]
        body = json.dumps({"events": events}).encode()
        while not self._is_taken(body, transport or self._transport):
            if stop.wait(_RETRY_SECONDS):
                return set()
        self.acknowledged |= set(ids)
        return set(ids)

    def _is_taken(self, body: bytes, transport: HttpTransport) -> bool:
        headers = {"content-type": "application/json", **self.credentials.headers(body, time.time())}
        try:
            reply = transport.post(body, headers)
        except UnreachableError:
            return False
        return reply.status == HTTPStatus.OK and b'"rejected":[]' in reply.body

    @contextmanager
    def playing(self) -> Iterator[None]:
        """Send now and then for as long as the block lasts."""
        stop = Event()

        def play() -> None:
            # A connection is one thread's.
            transport = HttpTransport(gateway_url(), _PATIENCE)
            while not stop.wait(_PAUSE_SECONDS):
                self.send(stop, transport)

        thread = Thread(target=play, name="game", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
