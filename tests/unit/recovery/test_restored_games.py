"""One game's rows are restored in the table of all games; those of the others stay, whatever happened in between."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from gamelake.contract.games import GamesContract, GameSpec, UnlistedGames
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.rewrites import maintenance_lease
from gamelake.delta.tables import open_table
from gamelake.model.naming import SILVER_EVENTS, game_table
from gamelake.privacy.erasure_records import ErasureRecords, PlannedFiles, PurgePlan
from gamelake.recovery.restore import GameRestore, RestoredTable, RestoredTitles, TableRestore
from gamelake.recovery.table_history import RestoreError, TableHistory
from tests.support.eventually import eventually
from tests.support.job_processes import run_job
from tests.support.player_tables import compact
from tests.support.silver_events import BEGINNING, Event, Silver

ARCHERY, BINGO = "Archery", "Bingo"
CONTRACT = GamesContract(games=(GameSpec(name="archery", match=(ARCHERY,)), GameSpec(name="bingo", match=(BINGO,))))


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
    return GameRestore(TableRestore(history, version), titles(former=frozenset([ARCHERY])))


def titles(
    game: str = "archery",
    former: frozenset[str] = frozenset(),
    contract: GamesContract = CONTRACT,
    tables: frozenset[str] = frozenset(),
) -> RestoredTitles:
    return RestoredTitles(game, contract, tables, former)


def ours(titles: RestoredTitles, *candidates: str | None) -> list[str | None]:
    column = pa.chunked_array([pa.array(candidates, pa.string())])
    found: list[str | None] = column.filter(titles.have(column)).to_pylist()
    return found


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
    compact(silver.store, SILVER_EVENTS)
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


def test_a_title_that_a_faulty_version_wrote_to_the_games_table_stays_the_other_games() -> None:
    assert ours(titles(former=frozenset([ARCHERY, BINGO])), ARCHERY, BINGO, None) == [ARCHERY]


def test_a_former_title_that_the_contract_no_longer_has_is_the_games() -> None:
    assert ours(titles(former=frozenset(["Bow and Arrow"])), "Bow and Arrow", "Chess") == ["Bow and Arrow"]


def test_a_game_without_an_entry_has_the_titles_that_are_routed_to_its_table() -> None:
    contract = GamesContract(games=CONTRACT.games, unlisted_games=UnlistedGames.OWN_TABLE)
    others = frozenset([game_table("chess"), game_table("pool_night")])

    found = titles("pool_night", frozenset(["Chess"]), contract, others)

    assert ours(found, "Pool Night", "Pool-Night", "Chess", ARCHERY) == ["Pool Night", "Pool-Night"]


def test_the_job_removes_no_row_of_a_game_that_was_written_to_anothers_table(tmp_path: Path) -> None:
    silver, (archery, bingo) = Silver(tmp_path), (Event(at=BEGINNING, game=game) for game in (ARCHERY, BINGO))
    tables = {SILVER_EVENTS: [archery, bingo], game_table("archery"): [archery], game_table("bingo"): [bingo]}
    for table, events in tables.items():
        silver.append(events, table)
    good = datetime.now(UTC)
    # The times of commits are in whole milliseconds.
    eventually(lambda: datetime.now(UTC) - good > timedelta(milliseconds=2))
    # A faulty version wrote Bingo's event to Archery's table, and rightly to that of all games.
    for table in (SILVER_EVENTS, game_table("archery")):
        silver.append([archery, bingo], table)
    games = tmp_path / "games.yaml"
    games.write_text("games:\n  - {name: archery, match: [Archery]}\n  - {name: bingo, match: [Bingo]}\n")

    variables = {"GAMELAKE_LAKEHOUSE": silver.location.uri, "GAMELAKE_GAMES_FILE": str(games)}
    run_job("restore", "--game", "archery", "--time", good.isoformat(), "--yes", **variables).check_returncode()

    assert Counter(silver.table(SILVER_EVENTS)["game_name"].to_pylist()) == {ARCHERY: 1, BINGO: 2}
    assert silver.table(game_table("archery"))["game_name"].to_pylist() == [ARCHERY]


def test_no_row_is_taken_from_a_file_that_an_unfinished_erasure_is_deleting(silver: Silver) -> None:
    restored(silver, 0)
    there = set(TableHistory.read(silver.store, SILVER_EVENTS).live_at(2))
    gone = tuple(sorted(there - set(TableHistory.read(silver.store, SILVER_EVENTS).live_at(3))))
    records = ErasureRecords(silver.store)
    plan = PurgePlan(run="erasure", not_before=BEGINNING, tables=(PlannedFiles(table=SILVER_EVENTS, paths=gone),))
    records.plan(plan)
    records.begin_deletion(plan.run)

    with pytest.raises(RestoreError, match="an erasure that has not ended is deleting 2 of the files of version 2"):
        restored(silver, 2)

    assert gamers(silver) == expected(archery=1)
