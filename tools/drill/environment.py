"""A game that plays while things break: it sends each event until it is acknowledged, as the SDK does."""

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus
from threading import Event, Thread

from deltalake.exceptions import DeltaError
from obstore.exceptions import BaseError

from gamelake.model.errors import GamelakeError
from gamelake.model.games import load_games
from gamelake.model.naming import SILVER_EVENTS, game_table
from gamelake.storage.reconciliation import balance
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table
from services.gateway.authentication import Role, read_keys
from services.sdk import Credentials, HttpTransport, UnreachableError
from tools.embedded.service import REPOSITORY
from tools.stack import SECRETS, StackError, containers, gateway_url, lakehouse

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


STREAM = "ingest_events"
LONGEST_SECONDS = 300.0
_LOOK_SECONDS = 0.5
_NAMED = 3
# It may deny whatever it is asked while it starts.
_NOT_YET = (GamelakeError, DeltaError, BaseError, OSError, ValueError)


class DrillError(GamelakeError):
    """A recovery did not come about."""


@dataclass(slots=True)
class Ground:
    """The stack under a drill: one game plays, another one has played before."""

    store: Store
    game: Game
    other: Game
    begun: date = field(default_factory=lambda: datetime.now(UTC).date())

    @classmethod
    def of_the_stack(cls) -> "Ground":
        """The running stack, with its owner's key.

        Raises:
            StackError: it is not up.
        """
        if not any(each.service == "ingest-events" and each.is_well for each in containers()):
            raise StackError("the stack is not up: make up")
        return cls(Store(lakehouse("root")), Game.number(0), Game.number(1))

    def wait_for(self, what: str, condition: Callable[[], bool], seconds: float = LONGEST_SECONDS) -> None:
        """Wait until something holds; while a service answers nothing, it doesn't.

        Raises:
            DrillError: it doesn't within so many seconds.
        """
        latest = time.monotonic() + seconds
        while not _holds(condition):
            if time.monotonic() > latest:
                raise DrillError(f"{what} did not come about within {seconds:.0f} s")
            time.sleep(_LOOK_SECONDS)

    def unwell(self) -> list[str]:
        """The services that are there and not well; one-shots have ended well."""
        return sorted({each.service for each in containers() if each.state != "exited" and not each.is_well})

    def wait_until_well(self) -> None:
        """Wait until every service is well, and an event that is sent now is in its table.

        Raises:
            DrillError: that does not come about.
        """
        fresh: set[str] = set()
        stop = Event()

        def is_taken() -> bool:
            fresh.update(self.game.send(stop))
            return True

        self.wait_for("an answer of the gateway", is_taken)
        self.wait_for("the row of an event that was sent", lambda: fresh <= self.rows(self.game.table).keys())
        self.wait_for("the health of all services", lambda: not self.unwell())

    def wait_for_rows(self) -> None:
        """Wait until all that was acknowledged is in silver."""
        sent = self.game.acknowledged
        self.wait_for("all that was acknowledged", lambda: sent <= self.rows(SILVER_EVENTS).keys())

    def rows(self, table: str) -> Counter[str]:
        """How often each event of the drills stands in a table."""
        handle = open_table(self.store.location, table)
        mine = [("event_date", ">=", self.begun), ("event_name", "=", EVENT_NAME)]
        return Counter(handle.to_pyarrow_table(columns=["event_id"], filters=mine)["event_id"].to_pylist())

    def problems(self) -> list[str]:
        """What is lost or doubled of all that was ever acknowledged, and what the books say."""
        told: list[str] = []
        for table in (SILVER_EVENTS, self.game.table):
            counts = self.rows(table)
            lost = sorted(each for each in self.game.acknowledged if not counts[each])
            doubled = sorted(each for each in self.game.acknowledged if counts[each] > 1)
            told += [f"{table}: {len(lost)} acknowledged events are lost, such as {lost[:_NAMED]}"] if lost else []
            told += [f"{table}: {len(doubled)} events are doubled, such as {doubled[:_NAMED]}"] if doubled else []
        # A batch between its manifest and its commits is no problem a moment later.
        books = balance(self.store).problems
        latest = time.monotonic() + LONGEST_SECONDS / 10
        while books and time.monotonic() < latest:
            time.sleep(_LOOK_SECONDS)
            books = balance(self.store).problems
        return told + books


def _holds(condition: Callable[[], bool]) -> bool:
    try:
        return condition()
    except _NOT_YET:
        return False
