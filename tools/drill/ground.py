"""Where drills take place: the stack, a game that plays on it, and what must hold after each of them."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from threading import Event

from deltalake.exceptions import DeltaError
from obstore.exceptions import BaseError

from gamelake.errors import GamelakeError
from gamelake.lake.store import Store
from gamelake.lake.tables import open_table
from gamelake.maintenance.books import balance
from gamelake.naming import SILVER_EVENTS
from tools.drill.game import EVENT_NAME, Game
from tools.stack import StackError, containers, lakehouse

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
