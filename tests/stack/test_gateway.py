"""From a game's request to a row in Trino on the whole stack, with faults on the way (rows 1, 39 of the matrix)."""

import json
import threading
import time
import uuid

import pytest
from deltalake import DeltaTable

from services.sdk import Credentials
from tests.stack.game import Game, an_event
from tests.stack.platform import Stack
from tests.stack.trino_users import ENGINEER
from tests.support.eventually import eventually

GAME, TABLE = "kart_rumble", "silver/kart_rumble_events"
EVENTS_PER_REQUEST = 50
REQUESTS_BEFORE_THE_KILL = 40
REQUESTS_AFTER_THE_RETURN = 20


@pytest.fixture
def game(stack: Stack) -> Game:
    stack.await_health("ingest")
    return Game.of(GAME)


def personal(mark: str) -> dict[str, object]:
    """All personal fields of an event, each value with a unique mark."""
    return {
        "gamer_id": f"gamer-{mark}",
        "event_params": {"device_id": f"device-{mark}"},
        "personal": {
            "email": f"{mark}@example.com",
            "ip_address": f"2001:db8::{mark[:4]}",
            "player_name": f"name-{mark}",
            "free_text": f"I am {mark}",
        },
    }


def test_an_event_by_http_is_a_row_in_trino_with_a_pseudonym_and_no_personal_data(stack: Stack, game: Game) -> None:
    mark = uuid.uuid4().hex
    first, second = (an_event(**personal(mark)) for _ in range(2))
    other_player = an_event(gamer_id=f"other-{mark}")

    reply = game.post([first, second, other_player])

    assert (reply.status, json.loads(reply.body)) == (200, {"accepted": 3, "rejected": []})
    eventually(lambda: game.acknowledged <= stack.event_ids(TABLE).keys(), timeout=120)
    schema, table = TABLE.split("/")
    named = f"SELECT * FROM information_schema.tables WHERE table_schema = '{schema}' AND table_name = '{table}'"  # noqa: S608 # our names
    eventually(lambda: ENGINEER.records(named) != [], timeout=120)
    ids = ", ".join(f"'{event_id}'" for event_id in game.acknowledged)
    statement = f"SELECT * FROM {TABLE.replace('/', '.')} WHERE event_id IN ({ids})"  # noqa: S608 # ids of our own
    eventually(lambda: len(ENGINEER.records(statement)) == 3, timeout=60)
    rows = ENGINEER.records(statement)
    names = {row["event_id"]: row["gamer_id"] for row in rows}
    one, same, other = (names[str(event["event_id"])] for event in (first, second, other_player))
    assert one == same != other
    assert all(len(name) == 32 for name in names.values())
    assert mark not in str(rows)
    assert mark not in stack.compose("logs", "--no-color", "ingest", "ingest-events", "postgres", "kafka")
    for row in rows:
        (value,) = bronze_values(stack, row["kafka_partition"], row["kafka_offset"])
        assert mark.encode() not in value


def bronze_values(stack: Stack, partition: int, offset: int) -> list[bytes]:
    """A record as Kafka had it."""
    location = stack.lakehouse
    table = DeltaTable(location.child("bronze/events"), storage_options=dict(location.options))
    read = table.to_pyarrow_table(columns=["value"], filters=[("partition", "=", partition), ("offset", "=", offset)])
    return [bytes(value) for value in read["value"].to_pylist()]


def test_events_without_the_games_signature_are_refused(game: Game) -> None:
    impostor = Game(Credentials(game.credentials.key, "0" * 48))

    assert impostor.post([an_event()]).status == 401
    assert game.post([an_event(game_name="Archery Duel"), an_event()]).status == 200
    assert len(game.acknowledged) == 1


class Load:
    """Requests in the background, each sent until it is acknowledged."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.acknowledged = self.repeated = 0

    def __enter__(self) -> "Load":
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop after the current request."""
        self._stop.set()
        self._thread.join(180)
        assert not self._thread.is_alive()

    def await_acknowledged(self, more: int) -> None:
        """Wait until so many more requests are acknowledged."""
        target = self.acknowledged + more
        eventually(lambda: self.acknowledged >= target or not self._thread.is_alive(), timeout=120)
        assert self.acknowledged >= target

    def _run(self) -> None:
        while not self._stop.is_set():
            events = [an_event(**personal(f"{self.acknowledged % 100:08d}")) for _ in range(EVENTS_PER_REQUEST)]
            self.repeated += self._game.post_until_taken(events) - 1
            self.acknowledged += 1


@pytest.mark.slow
def test_a_gateway_killed_under_load_loses_no_acknowledged_event(stack: Stack, game: Game) -> None:
    with Load(game) as load:
        load.await_acknowledged(REQUESTS_BEFORE_THE_KILL)
        started = time.monotonic()
        stack.crash("ingest")
        load.await_acknowledged(REQUESTS_AFTER_THE_RETURN)
        back_after = time.monotonic() - started

    assert load.repeated > 0
    eventually(lambda: game.acknowledged <= stack.event_ids(TABLE).keys(), timeout=180)
    counts = stack.event_ids(TABLE)
    assert {event_id for event_id in game.acknowledged if counts[event_id] != 1} == set()
    eventually(lambda: stack.reconciliation().problems == [], timeout=60)
    assert back_after < 90


@pytest.mark.slow
def test_without_the_vault_personal_data_is_refused_until_it_recovers(stack: Stack, game: Game) -> None:
    mark = uuid.uuid4().hex
    stack.compose("stop", "postgres")
    try:
        refused = game.post([an_event(**personal(mark))])
    finally:
        stack.compose("start", "postgres")

    assert refused.status == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert mark.encode() not in refused.body
    game.post_until_taken([an_event(**personal(mark))])
    stack.await_health("postgres")
    stack.await_health("registry")
    assert mark not in stack.compose("logs", "--no-color", "ingest")
