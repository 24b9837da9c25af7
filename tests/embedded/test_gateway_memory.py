"""Bodies that expand in memory: the gateway stays below the memory of its container, and serves other games."""

import gzip
import json
import sqlite3
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest

from tests.embedded.gateway import LIMITED_KEY, Gateway, body_of, events
from tests.support.eventually import eventually

MIB = 2**20
# The limit of the container in compose/.env, and the largest content of a body.
MOST_MIB, CONTENT = 400, 8 * MIB
SENDERS = 24
MANY_SENDERS, MANY_REQUESTS = 200, 10_000


@pytest.fixture
def gateway(open_gateway: Callable[..., Gateway]) -> Iterator[Gateway]:
    """The service, newly started, with the stack's settings."""
    opened = open_gateway()
    yield opened
    opened.process.stop()


def new_players(count: int, **fields: object) -> bytes:
    """A body of events of players whom the vault does not know."""
    some = [event | {"gamer_id": uuid.uuid4().hex} for event in events(count, **fields)]
    return json.dumps({"events": some}, separators=(",", ":")).encode()


# Bodies of a few kilobytes, by the part that expands in them.
BODIES: Mapping[str, Callable[[], bytes]] = {
    "one free text": lambda: new_players(1, personal={"free_text": "t" * (CONTENT - 2_000)}),
    "one name of a player": lambda: body_of(events(1, gamer_id=uuid.uuid4().hex + "n" * (CONTENT - 2_000))),
    "many free texts": lambda: new_players(1_000, personal={"free_text": "t" * 8_000}),
    "many attributes": lambda: new_players(4_000, attributes={str(number): "" for number in range(30)}),
    "an event that is not JSON": lambda: (
        b'{"events":[{"a":NaN},{"b":"%s"}]}' % (b'\\"' * 500_000 + b"x" * (CONTENT - 2 * MIB))
    ),
    "lists": lambda: b'{"events":[%s]}' % b",".join([b'{"experiment_ids":[%s]}' % b",".join([b'""'] * 36)] * 5_000),
}


@dataclass(slots=True)
class Neighbour:
    """A sender of another game, by the statuses that it got."""

    gateway: Gateway
    statuses: Counter[int] = field(default_factory=Counter)
    slowest: float = 0.0

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send one event after the other while the block runs, and at least one."""
        ended = threading.Event()
        thread = threading.Thread(target=self._send_until, args=(ended,))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _send_until(self, ended: threading.Event) -> None:
        while not self.statuses or not ended.wait(0.02):
            started = time.monotonic()
            self.statuses[self.gateway.send(body_of(events(1)), gamelake_key=LIMITED_KEY).status] += 1
            self.slowest = max(self.slowest, time.monotonic() - started)


def flood(gateway: Gateway, bodies: list[bytes], senders: int, requests: int) -> Counter[int]:
    """Send bodies from many clients at once. Return the statuses."""
    send = partial(gateway.send, content_encoding="gzip")
    with ThreadPoolExecutor(senders) as pool:
        return Counter(reply.status for reply in pool.map(send, (bodies[n % len(bodies)] for n in range(requests))))


@pytest.mark.parametrize("kind", BODIES)
def test_small_bodies_that_expand_take_bounded_memory_and_other_games_are_served(kind: str, gateway: Gateway) -> None:
    bodies = [gzip.compress(BODIES[kind]()) for _ in range(4)]
    neighbour, process = Neighbour(gateway), gateway.process.pid

    with neighbour.sending():
        statuses = flood(gateway, bodies, SENDERS, SENDERS)

    assert statuses.keys() <= {200, 503}
    assert neighbour.statuses.keys() == {200}
    assert gateway.peak_mib() < MOST_MIB
    assert gateway.process.pid == process
    assert b"Unexpected exit from worker" not in gateway.log()


def test_while_the_vault_hangs_large_personal_data_takes_bounded_memory_and_known_players_of_others_are_served(
    gateway: Gateway,
) -> None:
    bodies = [gzip.compress(BODIES["many free texts"]()) for _ in range(4)]
    known = partial(gateway.send, body_of(events(1)), gamelake_key=LIMITED_KEY)
    assert known().status == 200
    neighbour = Neighbour(gateway)

    with closing(sqlite3.connect(gateway.service.vault_file, isolation_level=None)) as held:
        held.execute("BEGIN EXCLUSIVE")
        with neighbour.sending():
            statuses = flood(gateway, bodies, SENDERS, SENDERS)

    assert statuses.keys() == {503}
    assert gateway.peak_mib() < MOST_MIB
    eventually(lambda: gateway.send(body_of(events(1))).status == 200, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one free text", "many free texts"])
def test_ten_thousand_small_bodies_that_expand_take_bounded_memory(kind: str, gateway: Gateway) -> None:
    bodies = [gzip.compress(BODIES[kind]()) for _ in range(20)]
    neighbour = Neighbour(gateway)

    with neighbour.sending():
        statuses = flood(gateway, bodies, MANY_SENDERS, MANY_REQUESTS)

    assert statuses.keys() <= {200, 503}
    assert statuses.total() == MANY_REQUESTS
    assert neighbour.statuses.keys() == {200}
    assert gateway.peak_mib() < MOST_MIB
    assert b"Unexpected exit from worker" not in gateway.log()
