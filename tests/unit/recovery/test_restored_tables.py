"""A table is restored while the stream continues: the dry run shows what changes; no row is lost or duplicated."""

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from deltalake import DeltaTable

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.rewrites import maintenance_lease
from gamelake.delta.tables import CommitOutcome, DeltaTables, open_table
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.model.errors import TransientError
from gamelake.objects.store import Store
from gamelake.privacy.row_eraser import RowEraser
from gamelake.recovery.restore import RestoredTable, TableRestore
from gamelake.recovery.table_history import RestoreError, TableHistory
from gamelake.scans.player_rows import PlayerFilter
from tests.support.eventually import eventually
from tests.support.job_processes import run_job
from tests.support.player_tables import BRONZE, SILVER, add_stream, an_entry, append, compact, players_in

ANNA, BEN, CARL = "a" * 32, "b" * 32, "c" * 32
NAME = SILVER.name


@pytest.fixture
def tables(store: Store) -> Iterator[DeltaTables]:
    with DeltaTables(store.location) as opened:
        for batch, player in enumerate((ANNA, BEN, CARL)):
            append(opened, store, SILVER, batch, [player])
        add_stream(store, "ingest_events", "query")
        yield opened


def restore(store: Store, version: int) -> RestoredTable:
    with maintenance_lease(store, NAME) as lease:
        return TableRestore(TableHistory.read(store, NAME), version).commit(lease)


@pytest.mark.parametrize(
    ("minutes", "moment", "version"),
    [((0, 5, 6), 5, 1), ((0, 5, -4), 2, 0), ((0, 5, -4), 5, 2), ((0, 15, 6), 10, 0), ((0, 15, 6), 15, 2)],
    ids=["in order", "behind: before", "behind: after", "ahead: before", "ahead: after"],
)
def test_the_version_of_a_time_has_no_commit_from_later_though_clocks_of_writers_differ(
    store: Store, tables: DeltaTables, minutes: tuple[int, ...], moment: int, version: int
) -> None:
    noon = datetime(2026, 11, 22, 12, tzinfo=UTC)
    history = TableHistory.read(store, NAME)
    for commit, minute in zip(history.commits, minutes, strict=True):
        commit.at = noon + timedelta(minutes=minute)

    assert history.at_time(noon + timedelta(minutes=moment)) == version


def test_rows_that_came_since_go(store: Store, tables: DeltaTables) -> None:
    done = restore(store, 0)

    assert (done.rows_removed, done.rows_restored, done.files_removed, done.files_restored) == (2, 0, 2, 0)
    assert done.batches == ("query-0/1", "query-0/2")
    assert (done.from_version, done.version) == (2, 3)
    assert players_in(store, SILVER) == {ANNA: 1}


def test_a_restore_can_be_undone(store: Store, tables: DeltaTables) -> None:
    restore(store, 0)

    done = restore(store, 2)

    assert (done.rows_removed, done.rows_restored) == (0, 2)
    assert players_in(store, SILVER) == {ANNA: 1, BEN: 1, CARL: 1}


def test_a_version_from_before_a_compaction_comes_back(store: Store, tables: DeltaTables) -> None:
    compact(store)

    done = restore(store, 1)

    assert (done.files_removed, done.files_restored) == (1, 2)
    assert players_in(store, SILVER) == {ANNA: 1, BEN: 1}


def test_the_stream_goes_on_and_takes_no_batch_twice(store: Store, tables: DeltaTables) -> None:
    restore(store, 0)

    again = tables.append(an_entry(store, SILVER, [CARL]), BatchTransaction("query-0", 2))
    append(tables, store, SILVER, 3, [BEN])

    assert again is CommitOutcome.ALREADY_COMMITTED
    assert players_in(store, SILVER) == {ANNA: 1, BEN: 1}


def test_rows_that_are_appended_during_a_restore_stay(store: Store, tables: DeltaTables) -> None:
    planned = TableRestore(TableHistory.read(store, NAME), 0)
    append(tables, store, SILVER, 3, [BEN])

    with maintenance_lease(store, NAME) as lease:
        done = planned.commit(lease)

    assert done.version == 4
    assert players_in(store, SILVER) == {ANNA: 1, BEN: 1}


def test_an_erasure_that_comes_in_between_is_not_undone(store: Store, tables: DeltaTables) -> None:
    planned = TableRestore(TableHistory.read(store, NAME), 1)
    RowEraser(store, SILVER, PlayerFilter(frozenset([ANNA])), "run-1").erase()

    with maintenance_lease(store, NAME) as lease, pytest.raises(TransientError, match="files were replaced meanwhile"):
        planned.commit(lease)

    assert players_in(store, SILVER) == {BEN: 1, CARL: 1}


def test_a_version_whose_files_were_vacuumed_is_refused(store: Store, tables: DeltaTables) -> None:
    compact(store)
    vacuum = TableVacuum(store, NAME, datetime.now(UTC) + timedelta(minutes=1))
    vacuum.run()

    with pytest.raises(RestoreError, match=r"2 of the files of version 1 are missing"):
        restore(store, 1)
    assert players_in(store, SILVER) == {ANNA: 1, BEN: 1, CARL: 1}


def test_files_that_come_back_count_as_appended_once(store: Store, tables: DeltaTables) -> None:
    restore(store, 0)
    restore(store, 2)

    log = TableLog.read(store, NAME)
    assert len(log.appended) == len({file.path for file in log.appended}) == 3
    assert log.live_rows == 3


def test_setting_back_to_what_is_there_changes_nothing(store: Store, tables: DeltaTables) -> None:
    assert restore(store, 2).version is None
    assert open_table(store.location, NAME).version() == 2


@pytest.mark.parametrize(
    ("options", "players"),
    [
        (("--version", "1"), {ANNA: 1, BEN: 1}),
        (("--before-batch", "1"), {ANNA: 1}),
        (("--before-batch", "0"), {}),
        (("--time", "2100-01-01"), {ANNA: 1, BEN: 1, CARL: 1}),
    ],
)
def test_the_job_takes_a_version_a_batch_or_a_time(
    store: Store, tables: DeltaTables, options: tuple[str, ...], players: dict[str, int]
) -> None:
    [would] = json.loads(job(store, NAME, *options, "--dry-run").stdout)["restored"]
    assert players_in(store, SILVER) == {ANNA: 1, BEN: 1, CARL: 1}

    [done] = json.loads(job(store, NAME, *options, "--yes").stdout)["restored"]

    assert players_in(store, SILVER) == players
    assert would | {"version": done["version"]} == done


def test_a_table_that_was_created_later_has_no_rows_after_a_restore_of_all(store: Store, tables: DeltaTables) -> None:
    between = datetime.now(UTC)
    # The times of commits are in whole milliseconds.
    eventually(lambda: datetime.now(UTC) - between > timedelta(milliseconds=2))
    append(tables, store, BRONZE, 0, [ANNA])

    done = json.loads(job(store, "--all", "--time", between.isoformat(), "--yes").stdout)["restored"]

    assert [(each["table"], each["to_version"], each["rows_removed"]) for each in done] == [
        (BRONZE.name, -1, 1),
        (NAME, 2, 0),
    ]
    assert players_in(store, BRONZE) == {}
    assert players_in(store, SILVER) == {ANNA: 1, BEN: 1, CARL: 1}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((NAME, "--version", "3"), "has versions 0 to 2, not 3"),
        ((NAME, "--before-batch", "9"), "has no batch 9"),
        ((NAME, "--time", "2000-01-01"), "was created at"),
        (("silver/no_such_events", "--version", "0"), "'silver/no_such_events' can't be restored"),
        (("--all", "--version", "0"), "--all goes with --time"),
        (("--version", "0"), "name the tables, or use --game or --all"),
        (("--game", "chess", "--time", "2100-01-01"), "'chess' is not a game; the games are: kart_rumble"),
        (("--game", "kart_rumble", "--version", "1"), "--game goes with --time or --before-batch"),
        (("--all", "--time", "2100-01-01", "--replay"), "--replay reads bronze, which --all restores too"),
        ((NAME, "--version", "1", "--replay"), "GAMELAKE_GAMES_FILE is not set"),
        (("--game", "kart_rumble", "--time", "2100-01-01"), "GAMELAKE_GAMES_FILE is not set"),
        ((NAME, "--version", "1", "--stream", "ingest_events"), "--stream goes with --before-batch"),
        (
            (NAME, "--before-batch", "1", "--stream", "live_ops"),
            "'live_ops' is not a stream; the streams are: ingest_events",
        ),
    ],
)
def test_what_can_not_be_done_is_refused_with_its_reason(
    store: Store, tables: DeltaTables, options: tuple[str, ...], problem: str
) -> None:
    refused = job(store, *options, "--yes")

    assert refused.returncode == 2
    assert problem in refused.stderr
    assert DeltaTable(store.location.child(NAME)).version() == 2


def test_a_lakehouse_without_tables_has_nothing_to_restore(store: Store) -> None:
    done = job(store, "--all", "--time", "2026-11-22T12:00:00Z", "--dry-run")

    assert (done.returncode, json.loads(done.stdout)["restored"]) == (0, [])


def job(store: Store, *options: str) -> "subprocess.CompletedProcess[str]":
    return run_job("restore", *options, GAMELAKE_LAKEHOUSE=store.location.uri)
