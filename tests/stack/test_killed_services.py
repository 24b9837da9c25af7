"""Rows 2, 6 to 12 and 45 of the fault matrix, on the whole stack: a service dies by SIGKILL in the middle of a load."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.embedded.sending import Sender
from tests.stack.platform import Stack
from tests.support.eventually import eventually

EVENTS_PER_STEP = 300
SECONDS_PER_STEP = 0.2
STEPS_BEFORE_THE_KILL = 15
STEPS_AFTER_THE_RETURN = 15
GAMES = ("Archery Duel", "Bingo Harbor", "Castle Clash Saga")


class Load:
    """Traffic that continues in the background until it is stopped."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.steps = 0
        self._failure: BaseException | None = None

    @contextmanager
    def running(self) -> Iterator["Load"]:
        """Send for as long as the block lasts; each event that was sent is confirmed by Kafka at its end."""
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join(180)
        assert not self._thread.is_alive()
        assert self._failure is None, self._failure

    def await_steps(self, more: int) -> None:
        """Wait until so many more steps are confirmed."""
        target = self.steps + more
        eventually(lambda: self.steps >= target or self._failure is not None, timeout=120)

    def _run(self) -> None:
        try:
            while not self._stop.wait(SECONDS_PER_STEP):
                self._sender.send_events(EVENTS_PER_STEP, GAMES[self.steps % len(GAMES)])
                self.steps += 1
        except BaseException as failure:  # the test's own thread raises it
            self._failure = failure


@pytest.mark.parametrize(
    "victim",
    [
        "ingest-events",
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in ("kafka", "spark-master", "spark-worker", "object-store")
        ),
    ],
)
def test_a_service_killed_in_the_middle_of_a_load_loses_nothing_and_doubles_nothing(
    victim: str, stack: Stack, sender: Sender
) -> None:
    with Load(sender).running() as load:
        load.await_steps(STEPS_BEFORE_THE_KILL)
        started = time.monotonic()
        stack.crash(victim)
        stack.await_health(victim)
        recovered = time.monotonic() - started
        load.await_steps(STEPS_AFTER_THE_RETURN)
    sent = set(sender.ledger.event_ids)

    eventually(lambda: sent <= stack.event_ids().keys(), timeout=180)

    counts = stack.event_ids()
    assert {event_id for event_id in sent if counts[event_id] != 1} == set()
    eventually(lambda: stack.reconciliation().problems == [], timeout=60)
    assert recovered < 180
