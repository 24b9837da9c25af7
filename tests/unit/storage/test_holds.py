"""Holds on a game's gold tables: known with their reason, until they expire or are released."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from gamelake.model.naming import hold_path
from gamelake.storage.holds import Hold, hold_back, holds, release
from gamelake.storage.store import Location, Store

NOW = datetime(2026, 1, 9, 6, tzinfo=UTC)
HOLD = Hold(game="chess", by="ann", since=NOW, day=date(2026, 1, 8), why="ids stand twice")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Location(uri=tmp_path.as_uri()))


def test_a_hold_is_in_force_until_it_is_released(store: Store) -> None:
    hold_back(store, HOLD)

    assert holds(store, NOW) == {"chess": HOLD}
    assert release(store, "chess")
    assert holds(store, NOW) == {}
    assert not release(store, "chess")


def test_a_hold_with_an_end_expires(store: Store) -> None:
    hold_back(store, Hold(game="chess", by="ann", since=NOW, day=HOLD.day, why="", until=NOW + timedelta(hours=1)))

    assert "chess" in holds(store, NOW)
    assert "chess" not in holds(store, NOW + timedelta(hours=1))


def test_a_hold_that_can_not_be_read_holds(store: Store) -> None:
    store.put(hold_path("chess"), b"{")

    assert holds(store, NOW)["chess"].why == "the hold can't be read"
