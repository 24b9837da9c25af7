"""The sets of players' numbers: their memory is bounded, whatever the number of days and players."""

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from gamelake.objects.store import Location, Store
from gamelake.serving.kpis import sets as kpi_sets
from gamelake.serving.kpis.numbers import Numbers
from gamelake.serving.kpis.sets import DaySets, EarlierPlayers, Played, PlayerSets, as_set
from gamelake.serving.kpis.table_files import TableFilesOf
from gamelake.serving.kpis.tables import MONEY, PLAYER_SETS

FIRST = date(2026, 1, 1)
PLAYERS = 1_000_000


def some(players: int, day: int) -> Numbers:
    return np.random.default_rng(day).choice(PLAYERS, players, replace=False).astype(np.uint32)


def played(active: BitMap, payers: BitMap) -> Played:
    return Played(active, payers, pa.array(range(len(payers))).cast(pa.decimal128(25, 6)).cast(MONEY))


def test_all_players_who_ever_played_take_little_memory_because_their_numbers_are_consecutive() -> None:
    ever, active = as_set(np.arange(PLAYERS, dtype=np.uint32)), as_set(some(PLAYERS // 10, 1))

    sets = DaySets.of(played(active, BitMap()), EarlierPlayers(ever), {})

    assert sets.ever == ever
    assert sets.bytes < 3 * len(active.serialize())


def test_the_memory_of_sets_is_bounded_in_bytes_and_all_days_can_still_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = [FIRST + timedelta(n) for n in range(8)]
    known = EarlierPlayers(as_set(some(10, 2)))
    made = {day: DaySets.of(played(as_set(some(100_000, day.day)), as_set(some(10, 1))), known, {}) for day in days}
    most = 2 * made[FIRST].bytes
    monkeypatch.setattr(kpi_sets, "_CACHED_BYTES", most)
    table = TableFilesOf(Store(Location(uri=tmp_path.as_uri())), PLAYER_SETS)
    table.open()
    sets = PlayerSets(table)

    table.commit([sets.write((day, "Archery"), made[day]) for day in days], [], {})
    table.open()
    sets.open()

    files = sets.days("Archery")
    for day in (*days, *reversed(days)):
        assert sets.read(files[day]) == made[day]
        assert 0 < sets.cached_bytes <= most
