"""The environment of drills: the running stack, games that send events during a fault, and checks afterwards."""

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

from gamelake.contract.games import load_games
from gamelake.delta.tables import open_table
from gamelake.ledger.reconciliation import reconcile
from gamelake.model.errors import GamelakeError
from gamelake.model.naming import SILVER_EVENTS, game_table
from gamelake.objects.store import Store
from services.gateway.authentication import Role, read_keys
from services.sdk import Credentials, HttpTransport, UnreachableError
from tools.embedded.service import REPOSITORY
from tools.stack import SECRETS, StackError, containers, gateway_url, lakehouse

# Test events of the platform, which gold ignores.
EVENT_NAME = "smoke_test"
_PATIENCE = timedelta(seconds=5)
_AT_ONCE = 20
_PAUSE_SECONDS = 0.5
_RETRY_SECONDS = 0.2
STREAM = "ingest_events"
LONGEST_SECONDS = 300.0
_POLL_SECONDS = 0.5
_NAMED = 3
# Errors while services start.
_NOT_YET = (GamelakeError, DeltaError, BaseError, OSError, ValueError)


@dataclass(slots=True)
class DrillGame:
    """A game that sends events, each until it is acknowledged; `acknowledged` has the ids of all of them."""

    name: str
    credentials: Credentials
    acknowledged: set[str] = field(default_factory=set)
    _transport: HttpTransport = field(default_factory=lambda: HttpTransport(gateway_url(), _PATIENCE))

    @classmethod
    def number(cls, number: int) -> "DrillGame":
        """Return a game of the contract by its index, with its key of the stack."""
        contract = load_games(REPOSITORY / "contracts/games.yaml")
        name = contract.games[number].name
        keys = read_keys(SECRETS / "ingest-keys/keys.yaml", contract).values()
        (key,) = (key for key in keys if key.game == name and key.role is Role.GAME)
        return cls(name, Credentials(key.id, key.secrets[0]))

    @property
    def table(self) -> str:
        """The game's silver table."""
        return game_table(self.name)

    def send(self, stop: Event, transport: HttpTransport | None = None) -> set[str]:
        """Send new events until they are acknowledged or `stop` is set; returns their ids, empty if stopped."""
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
        """Send events in the background for as long as the block lasts."""
        stop = Event()

        def play() -> None:
            # A connection belongs to one thread.
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


class DrillError(GamelakeError):
    """A recovery did not succeed."""


@dataclass(slots=True)
class DrillEnvironment:
    """The stack under a drill: one game sends events, another one has sent some before."""

    store: Store
    game: DrillGame
    other: DrillGame
    begun: date = field(default_factory=lambda: datetime.now(UTC).date())

    @classmethod
    def of_running_stack(cls) -> "DrillEnvironment":
        """Return the running stack, with the root key of its object store.

        Raises:
            StackError: the stack is not running.
        """
        if not any(each.service == "ingest-events" and each.is_up for each in containers()):
            raise StackError("the stack is not running: make up")
        return cls(Store(lakehouse("root")), DrillGame.number(0), DrillGame.number(1))

    def wait_for(self, what: str, condition: Callable[[], bool], seconds: float = LONGEST_SECONDS) -> None:
        """Wait until a condition holds; errors of services that are starting count as "not yet".

        Raises:
            DrillError: the condition does not hold within `seconds`.
        """
        latest = time.monotonic() + seconds
        while not _holds(condition):
            if time.monotonic() > latest:
                raise DrillError(f"timeout: {what} not within {seconds:.0f} s")
            time.sleep(_POLL_SECONDS)

    def unhealthy(self) -> list[str]:
        """Return services with a container that is neither healthy nor a one-shot that has ended."""
        return sorted({each.service for each in containers() if each.state != "exited" and not each.is_up})

    def wait_until_healthy(self) -> None:
        """Wait until an event that is sent now is in its table and every service is healthy.

        Raises:
            DrillError: not within the time limit.
        """
        fresh: set[str] = set()
        stop = Event()

        def is_taken() -> bool:
            fresh.update(self.game.send(stop))
            return True

        self.wait_for("an acknowledgement of the gateway", is_taken)
        self.wait_for("the row of a new event", lambda: fresh <= self.rows(self.game.table).keys())
        self.wait_for("the health of all services", lambda: not self.unhealthy())

    def wait_for_rows(self) -> None:
        """Wait until all acknowledged events are in silver."""
        sent = self.game.acknowledged
        self.wait_for("rows of all acknowledged events", lambda: sent <= self.rows(SILVER_EVENTS).keys())

    def rows(self, table: str) -> Counter[str]:
        """Count the rows of each event of the drills in a table, by event id."""
        handle = open_table(self.store.location, table)
        mine = [("event_date", ">=", self.begun), ("event_name", "=", EVENT_NAME)]
        return Counter(handle.to_pyarrow_table(columns=["event_id"], filters=mine)["event_id"].to_pylist())

    def problems(self) -> list[str]:
        """Return acknowledged events that are lost or duplicated, and problems of the reconciliation."""
        problems: list[str] = []
        for table in (SILVER_EVENTS, self.game.table):
            counts = self.rows(table)
            lost = sorted(each for each in self.game.acknowledged if not counts[each])
            doubled = sorted(each for each in self.game.acknowledged if counts[each] > 1)
            problems += [f"{table}: {len(lost)} acknowledged events are lost, such as {lost[:_NAMED]}"] if lost else []
            problems += (
                [f"{table}: {len(doubled)} events are duplicated, such as {doubled[:_NAMED]}"] if doubled else []
            )
        # A batch between its manifest and its commits differs for a moment only.
        unreconciled = reconcile(self.store).problems
        latest = time.monotonic() + LONGEST_SECONDS / 10
        while unreconciled and time.monotonic() < latest:
            time.sleep(_POLL_SECONDS)
            unreconciled = reconcile(self.store).problems
        return problems + unreconciled


def _holds(condition: Callable[[], bool]) -> bool:
    try:
        return condition()
    except _NOT_YET:
        return False
