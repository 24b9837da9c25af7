"""One game's rows are restored in the table of all games; those of the others stay, whatever happened in between."""

from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.model.naming import SILVER_EVENTS
from gamelake.recovery.restore import GameRestore, RestoredTable, TableRestore, names_in
from gamelake.recovery.table_history import TableHistory
from gamelake.storage.rewrites import maintenance_lease
from gamelake.storage.table_log import TableLog
from gamelake.storage.tables import open_table
from tests.silver_events import BEGINNING, Event, Silver

ARCHERY, BINGO = "Archery", "Bingo"


@pytest.fixture
def silver(tmp_path: Path) -> Silver:
    silver = Silver(tmp_path)
    for batch in range(3):
        silver.append([Event(at=BEGINNING, game=game, gamer=f"{game}-{batch}") for game in (ARCHERY, BINGO)])
    return silver


def restored(silver: Silver, version: int) -> RestoredTable:
    with maintenance_lease(silver.store, SILVER_EVENTS) as lease:
        return of_archery(silver, version).commit(lease)


def of_archery(silver: Silver, version: int) -> GameRestore:
    history = TableHistory.read(silver.store, SILVER_EVENTS)
    return GameRestore(TableRestore(silver.store, history, version), frozenset([ARCHERY]))


def gamers(silver: Silver) -> Counter[str]:
    return Counter(open_table(silver.location, SILVER_EVENTS).to_pyarrow_table()["gamer_id"].to_pylist())


def expected(archery: int, bingo: int = 3) -> Counter[str]:
    return Counter([*(f"{ARCHERY}-{n}" for n in range(archery)), *(f"{BINGO}-{n}" for n in range(bingo))])


def test_only_the_rows_of_the_game_go(silver: Silver) -> None:
    planned = of_archery(silver, 0).dry_run()

    done = restored(silver, 0)

    assert gamers(silver) == expected(archery=1)
    assert (done.rows_removed, done.rows_restored, done.batches) == (2, 0, ("test/1", "test/2"))
    assert (planned.rows_removed, planned.version) == (2, None)


def test_they_come_back_when_the_game_is_set_forth_again(silver: Silver) -> None:
    restored(silver, 0)

    assert restored(silver, 2).rows_restored == 2

    assert gamers(silver) == expected(archery=3)


def test_a_compaction_in_between_changes_nothing(silver: Silver) -> None:
    TableCompaction(
        silver.location, SILVER_EVENTS, CompactionRule(target_bytes=10**6, hot_files=1, today=date(2026, 11, 22))
    )()
    silver.append([Event(at=BEGINNING, game=BINGO, gamer=f"{BINGO}-3")])

    restored(silver, 1)

    assert gamers(silver) == expected(archery=2, bingo=4)


def test_what_is_appended_afterwards_stays(silver: Silver) -> None:
    plan = of_archery(silver, 0)
    silver.append([Event(at=BEGINNING, game=BINGO, gamer=f"{BINGO}-3")])

    with maintenance_lease(silver.store, SILVER_EVENTS) as lease:
        plan.commit(lease)

    assert gamers(silver) == expected(archery=1, bingo=4)


def test_reconciliation_accepts_rewritten_files(silver: Silver) -> None:
    restored(silver, 0)

    log = TableLog.read(silver.store, SILVER_EVENTS)
    assert (len(log.appended), log.live_rows) == (3, 4)


def test_a_game_is_known_by_the_names_in_its_own_table(silver: Silver) -> None:
    assert names_in(silver.store, SILVER_EVENTS) == {ARCHERY, BINGO}
