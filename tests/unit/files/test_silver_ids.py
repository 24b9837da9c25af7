"""Which events silver has: read once for all tasks of a worker, and forgotten when silver may have lost them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gamelake.contracts.games import load_games
from gamelake.files import silver_ids
from gamelake.files.silver_ids import SilverIds
from gamelake.lake.store import Location, Store
from gamelake.naming import SILVER_EVENTS
from gamelake.silver.identity import Identities
from gamelake.silver.known_events import ANY_TIME, Events
from gamelake.silver.routing import Router

GAMES = load_games(Path("contracts/games.yaml"))
GAME = GAMES.games[0]
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
IDENTITIES = Identities("seed")


class CountingStore(Store):
    """Counts which objects were read whole."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.read: list[str] = []

    def get(self, path: str) -> bytes | None:
        """An object."""
        self.read.append(path)
        return super().get(path)


@pytest.fixture(autouse=True)
def _a_new_worker() -> Iterator[None]:
    silver_ids.forget()
    yield
    silver_ids.forget()


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    return CountingStore(Location(uri=tmp_path.as_uri()))


def land(store: Store, *ids: str, at: datetime = NOON, mode: str = "append") -> int:
    """Give silver one file with events; gives the version."""
    rows = pa.table(
        {
            "game_name": [GAME.match[0]] * len(ids),
            "event_id": list(ids),
            "event_time": pa.array([at] * len(ids), pa.timestamp("us", "UTC")),
        }
    )
    table = store.location.child(SILVER_EVENTS)
    write_deltalake(table, rows, mode=mode)  # type: ignore[call-overload] # append or overwrite
    return DeltaTable(table).version()


def a_task(store: Store, version: int | None, remembered: int = 1_000) -> SilverIds:
    return SilverIds(store, version, (), Router(GAMES, frozenset()), IDENTITIES, remembered)


def has(task: SilverIds, *ids: str, at: datetime = NOON) -> list[bool]:
    codes = np.zeros(len(ids), np.int64)
    high, rest = IDENTITIES.of([GAME.table], codes, pa.array(ids))
    moment = int(at.timestamp() * 1_000_000)
    found = task.have(Events.of(high, rest, np.full(len(ids), ANY_TIME, np.int64)), moment, moment)
    return [bool(each) for each in found]


def test_an_event_is_known_by_its_game_and_id_in_files_of_its_time_alone(store: CountingStore) -> None:
    land(store, "a")
    version = land(store, "b", at=NOON + timedelta(days=1))

    assert has(a_task(store, version), "a", "b", "c") == [True, False, False]
    assert len(store.read) == 1


def test_without_the_table_nothing_is_known(store: CountingStore) -> None:
    assert has(a_task(store, None), "a") == [False]


def test_the_next_task_of_a_worker_reads_only_files_that_are_new(store: CountingStore) -> None:
    first = land(store, "a", "b")
    assert has(a_task(store, first), "a") == [True]
    second = land(store, "c")

    assert has(a_task(store, second), "a", "b", "c", "d") == [True, True, True, False]
    assert len(store.read) == 2


def test_what_was_taken_out_of_silver_since_is_not_known_any_more(store: CountingStore) -> None:
    assert has(a_task(store, land(store, "a", "b")), "a") == [True]

    restored = land(store, "b", mode="overwrite")

    assert has(a_task(store, restored), "a", "b") == [False, True]


def test_a_worker_that_has_read_more_than_it_may_keep_begins_anew(store: CountingStore) -> None:
    first = land(store, "a", "b")
    assert has(a_task(store, first, remembered=1), "a") == [True]

    assert has(a_task(store, first, remembered=1), "a", "b") == [True, True]
    assert len(store.read) == 2
