"""Compaction in a process without Spark: bins that its memory holds, and a word about what is left."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from gamelake.contract.games import load_games
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.maintenance import compaction_run
from gamelake.maintenance.compaction import Compacted
from gamelake.maintenance.compaction_run import (
    CompactionEngine,
    CompactionRun,
    CompactionScope,
    NotCompacted,
    compact_locally,
    is_small,
    pending_locally,
    planned_compaction,
    skipped_by,
)
from gamelake.objects.store import Store
from tests.support.player_tables import SILVER, append, players_in

ANNA, BEN = "a" * 32, "b" * 32
TODAY = date(2026, 11, 22)
MANY = 2**30


@pytest.fixture
def tables(store: Store) -> Iterator[DeltaTables]:
    with DeltaTables(store.location) as opened:
        for batch in range(12):
            append(opened, store, SILVER, batch, [ANNA, BEN])
        yield opened


@pytest.fixture
def of_all(store: Store, tables: DeltaTables) -> CompactionRun:
    return CompactionRun(store, load_games(Path("contracts/games.yaml")), CompactionScope.DAILY, TODAY)


def file_bytes(store: Store) -> list[int]:
    actions = open_table(store.location, SILVER.name).get_add_actions(flatten=True)
    return list(json.loads(json.dumps(actions.column("size_bytes").to_pylist())))


def test_all_that_fits_is_compacted_locally_and_nothing_is_skipped(store: Store, of_all: CompactionRun) -> None:
    before = players_in(store, SILVER)

    [done] = compact_locally(of_all.here(MANY).due())

    assert isinstance(done, Compacted)
    assert (done.files_before, done.files_after) == (12, 1)
    assert players_in(store, SILVER) == before
    assert skipped_by(of_all) == []


def test_no_bin_is_larger_than_the_memory_allows_and_what_is_left_is_named(store: Store, of_all: CompactionRun) -> None:
    most = 4 * max(file_bytes(store))
    before = players_in(store, SILVER)

    due = of_all.here(most).due()
    [done] = compact_locally(due)
    [rest] = skipped_by(of_all)

    assert all(each.bytes <= most for found in due for each in found.bins)
    assert isinstance(done, Compacted)
    assert 1 < done.files_after < done.files_before
    assert players_in(store, SILVER) == before
    assert (rest.table, rest.skipped_files) == (SILVER.name, len(file_bytes(store)))
    assert rest.command == f"python -m jobs.compact --scope daily {SILVER.name}"


def test_repeated_local_runs_come_to_an_end(store: Store, of_all: CompactionRun) -> None:
    here = of_all.here(4 * max(file_bytes(store)))

    runs = 0
    while due := here.due():
        compact_locally(due)
        runs += 1

    assert 1 <= runs <= 5


def test_the_dry_run_lists_what_the_next_run_compacts_and_skips(store: Store, of_all: CompactionRun) -> None:
    sizes = file_bytes(store)

    [all_here] = pending_locally(of_all, MANY)
    assert (all_here.table, all_here.files, all_here.bytes) == (SILVER.name, 12, sum(sizes))  # type: ignore[union-attr]
    # One file does not make a bin.
    none_here, rest = pending_locally(of_all, max(sizes))
    assert (none_here.files, none_here.bytes) == (0, 0)  # type: ignore[union-attr]
    assert (rest.skipped_files, rest.skipped_bytes) == (12, sum(sizes))  # type: ignore[union-attr]
    some_here, rest = pending_locally(of_all, 11 * max(sizes))
    assert (some_here.files, rest.skipped_files) == (11, 1)  # type: ignore[union-attr]
    compact_locally(of_all.here(MANY).due())
    [nothing] = pending_locally(of_all, MANY)
    assert (nothing.table, nothing.files) == (SILVER.name, 0)  # type: ignore[union-attr]


def test_small_runs_are_local_and_large_ones_take_spark(
    store: Store, of_all: CompactionRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = of_all.due()

    assert is_small(due, MANY)
    assert not is_small(due, max(file_bytes(store)))
    monkeypatch.setattr(compaction_run, "_SMALL_RUN_BYTES", sum(file_bytes(store)) - 1)
    assert not is_small(due, MANY)
    assert [planned_compaction(each, each.engine).by for each in due] == [CompactionEngine.TASK]
    monkeypatch.setattr(compaction_run, "TASK_BYTES", 1)
    assert [planned_compaction(each, each.engine).by for each in due] == [CompactionEngine.OPTIMIZE]


def test_a_table_that_can_not_be_compacted_stops_no_other(store: Store, of_all: CompactionRun) -> None:
    due = of_all.here(MANY).due()
    for path in store.paths(SILVER.name):
        if path.endswith(".parquet"):
            store.delete(path)

    [stayed] = compact_locally(due)

    assert isinstance(stayed, NotCompacted)
    assert stayed.table == SILVER.name
