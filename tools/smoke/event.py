"""The event of the smoke test: new in each run, of a game of the contract, with personal data; and its sending."""

import json
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from gamelake.contract.games import GameSpec, load_games
from gamelake.model.errors import SettingsError
from services.gateway.authentication import Role, read_keys
from services.sdk import Credentials, HttpTransport, Reply, UnreachableError
from tools.smoke.event_trace import NEXT_COMMANDS, NotYetError, Step, StepFailedError
from tools.smoke.settings import SmokeSettings

# Analysts can filter such events by this name.
EVENT_NAME = "smoke_test"
# The same player in all runs, so that the vault does not grow. Reserved names and addresses: RFC 2606, RFC 5737.
PLAYER = "smoke-test-player"
PERSONAL = {"email": "smoke@example.com", "ip_address": "192.0.2.1", "free_text": "smoke-test-words"}
_JSON = "application/json"
_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeEvent:
    """An event as a game sends it, and the id to find it by."""

    event_id: str
    game: GameSpec
    body: bytes


def choose_game(settings: SmokeSettings, name: str | None) -> GameSpec:
    """Return the game of this name, or the contract's first one.

    Raises:
        SettingsError: the contract has no such game.
    """
    games = load_games(settings.contracts / "games.yaml").games
    if name is None:
        return games[0]
    for game in games:
        if game.name == name:
            return game
    raise SettingsError(
        f"contracts/games.yaml names no game '{name}'; it has {games[0].name} and {len(games) - 1} more"
    )


def credentials_of(settings: SmokeSettings, game: GameSpec) -> Credentials:
    """Return a key of the game, to sign requests with.

    Raises:
        SettingsError: the file of keys can't be read, or has no key of the game.
    """
    for key in read_keys(settings.keys_file, load_games(settings.contracts / "games.yaml")).values():
        if key.game == game.name and key.role is Role.GAME:
            return Credentials(key.id, key.secrets[0])
    raise SettingsError(
        f"INGEST_KEYS_FILE is '{settings.keys_file}', which has no key of {game.name}: make up makes it"
    )


def make_event(game: GameSpec) -> SmokeEvent:
    """Create an event with the present time."""
    event_id = str(uuid.uuid4())
    event = {
        "event_id": event_id,
        "event_name": EVENT_NAME,
        "event_time": datetime.now(UTC).isoformat(),
        "gamer_id": PLAYER,
        "personal": PERSONAL,
    }
    return SmokeEvent(event_id=event_id, game=game, body=json.dumps({"events": [event]}).encode())


def leaked_values(cells: list[str]) -> list[str]:
    """Return personal values that a row contains; the gateway must have removed or replaced all of them."""
    return [sent for sent in (PLAYER, *PERSONAL.values()) if any(sent in cell for cell in cells)]


class GatewayClient:
    """Sends events to the gateway as one game."""

    def __init__(self, url: str, credentials: Credentials, patience: timedelta) -> None:
        self._url = url
        self._credentials = credentials
        self._transport = HttpTransport(url, patience)

    def send(self, event: SmokeEvent) -> float:
        """Send the event; returns the seconds from the request to the acknowledgement.

        Raises:
            NotYetError: no response, or one that asks to retry.
            StepFailedError: the event was rejected.
        """
        started = time.perf_counter()
        headers = {"content-type": _JSON, **self._credentials.headers(event.body, time.time())}
        try:
            reply = self._transport.post(event.body, headers)
        except UnreachableError as error:
            raise NotYetError(f"{self._url} is not available ({error})") from error
        if reply.status in _AGAIN:
            raise NotYetError(f"the gateway responds {reply.status}, {_text_of(reply)}")
        if reply.status != HTTPStatus.OK or b'"rejected":[]' not in reply.body:
            problem = f"the gateway responds {reply.status}, {_text_of(reply)}"
            raise StepFailedError(Step.ACKNOWLEDGED, problem, NEXT_COMMANDS[Step.ACKNOWLEDGED])
        return time.perf_counter() - started


def _text_of(reply: Reply) -> str:
    return reply.body.decode(errors="replace")
