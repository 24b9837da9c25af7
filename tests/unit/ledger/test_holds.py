"""Holds on a table's gold: known with their reason, by day, until they expire or are released."""

from datetime import UTC, date, datetime, timedelta

import msgspec

from gamelake.ledger.holds import Hold, hold_back, hold_of, holds, release
from gamelake.model.naming import HOLDS_FOLDER
from gamelake.objects.store import Store

NOW = datetime(2026, 1, 9, 6, tzinfo=UTC)
CHESS = "silver/chess_events"
HOLD = Hold(table=CHESS, by="ann", since=NOW, day=date(2026, 1, 8), checks=("ids",), why="ids stand twice")
EARLIER = msgspec.structs.replace(HOLD, day=date(2026, 1, 2))


def test_a_hold_is_in_force_until_it_is_released(store: Store) -> None:
    hold_back(store, HOLD)

    assert holds(store, NOW) == {CHESS: [HOLD]}
    assert release(store, CHESS) == 1
    assert holds(store, NOW) == {}
    assert release(store, CHESS) == 0


def test_each_day_has_a_hold_of_its_own(store: Store) -> None:
    for hold in (HOLD, EARLIER):
        hold_back(store, hold)

    assert holds(store, NOW) == {CHESS: [EARLIER, HOLD]}
    assert release(store, CHESS, EARLIER.day) == 1
    assert holds(store, NOW) == {CHESS: [HOLD]}
    assert hold_of(store, CHESS, EARLIER.day, NOW) is None
    assert hold_of(store, CHESS, HOLD.day, NOW) == HOLD


def test_a_hold_with_an_end_expires(store: Store) -> None:
    hold_back(store, msgspec.structs.replace(HOLD, until=NOW + timedelta(hours=1)))

    assert CHESS in holds(store, NOW)
    assert CHESS not in holds(store, NOW + timedelta(hours=1))


def test_a_hold_that_can_not_be_read_holds(store: Store) -> None:
    store.put(f"{HOLDS_FOLDER}/{CHESS}/{HOLD.day}.json", b"{")

    (hold,) = holds(store, NOW)[CHESS]
    assert (hold.day, hold.why) == (HOLD.day, "the hold can't be read")
