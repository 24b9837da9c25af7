"""Maintenance of a table with a long history needs no more memory than that of a short one."""

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from gamelake.delta.log.history_checkpoints import read_log_checkpoint
from gamelake.delta.log.table_log import TableLog
from gamelake.ledger.reconciliation import reconcile
from gamelake.maintenance.log_cleanup import LogCleanup
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.model.naming import Horizon
from gamelake.objects.store import Location, Store
from tests.support.long_history import TABLE, moment, write_history, write_manifests

ROOT = Path(__file__).parents[3]
SHORT, LONG = 2_000, 6_000
# With a Python object for each file that was removed, 4,000 commits took 11 MiB.
MORE_KIB = 6 * 1024
# Commits of a day, and days within the retention. With all entries in memory five more days took 300 to 350 KiB.
DAY, FEW_DAYS, MANY_DAYS = 101, 3, 8
MORE_OF_DAYS_KIB = 100


def lakehouse(folder: Path, commits: int) -> Store:
    folder.mkdir()
    store = Store(Location(uri=folder.as_uri()))
    write_history(store, commits)
    return store


@pytest.mark.slow
def test_vacuum_deletes_what_the_whole_log_in_memory_names(tmp_path: Path) -> None:
    store = lakehouse(tmp_path / "lake", 350)
    store.put(f"{TABLE}/part-orphan.parquet", b"")
    log = TableLog.read(store, TABLE)
    vacuum = TableVacuum(store, TABLE, datetime.now(UTC) + timedelta(hours=1), block=7)

    found = [each for block in vacuum.unreferenced() for each in block]

    named = {each.file.path.removeprefix(f"{TABLE}/") for each in found if each.was_named}
    assert named == set(log.removed)
    assert [each.file.path for each in found if not each.was_named] == [f"{TABLE}/part-orphan.parquet"]
    assert vacuum.run().files == len(found)
    assert {path.removeprefix(f"{TABLE}/") for path in store.paths(TABLE) if path.endswith("parquet")} - {
        path.removeprefix(f"{TABLE}/") for path in store.paths(f"{TABLE}/_delta_log")
    } == set(log.live)


def grown_kib(folder: Path, commits: int) -> int:
    """By how much a process grows that vacuums such a table."""
    lakehouse(folder, commits)
    command = [sys.executable, "-m", "tests.support.long_history", str(folder), "vacuum"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    grown, deleted = map(int, done.stdout.split())
    assert deleted == commits // 101 * 100
    return grown


@pytest.mark.slow
def test_vacuums_memory_does_not_grow_with_the_history(tmp_path: Path) -> None:
    assert grown_kib(tmp_path / "long", LONG) < grown_kib(tmp_path / "short", SHORT) + MORE_KIB


def lakehouse_of_days(folder: Path, days: int) -> Store:
    """A lakehouse of as many days, all within the retention, whose log cleanup has run each day."""
    store = lakehouse(folder, days * DAY)
    write_manifests(store, days * DAY)
    for day in range(1, days + 1):
        clean_up_after(store, day)
    return store


def clean_up_after(store: Store, day: int) -> None:
    cleanup = LogCleanup(store=store, since=moment(0), compact_before=moment(day * DAY), keep_manifests=1)
    for plan in cleanup.plans([TABLE]):
        plan.carry_out(store)


def test_a_days_log_checkpoint_does_not_keep_batches_that_the_retentions_manifest_checkpoint_has(
    tmp_path: Path,
) -> None:
    # So few batches a day that the newest manifests, which always stay, are more than those of the retention.
    days, kept_days, retention_days = 8, 3, 2
    store = lakehouse(tmp_path / "few", days * DAY)
    for day in range(1, days + 1):
        write_manifests(store, day * DAY, first=(day - 1) * DAY)
        since, before = moment((day - retention_days) * DAY), moment(day * DAY)
        cleanup = LogCleanup(store=store, since=since, compact_before=before, keep_manifests=kept_days * DAY)
        for plan in cleanup.plans([TABLE]):
            plan.carry_out(store)

    checkpoint = read_log_checkpoint(store, TABLE, Horizon.DAY)

    assert checkpoint is not None
    assert len(checkpoint.appended) <= (kept_days + 1) * DAY
    assert reconcile(store).problems == []


def reconcile_all(store: Store, days: int) -> None:
    assert reconcile(store).problems == []


def read_log(store: Store, days: int) -> None:
    assert TableLog.read(store, TABLE).live


@pytest.mark.parametrize("work", [reconcile_all, pytest.param(read_log, marks=pytest.mark.slow), clean_up_after])
def test_memory_does_not_grow_with_the_days_of_the_retention(
    tmp_path: Path, work: Callable[[Store, int], None]
) -> None:
    peaks = []
    for days in (FEW_DAYS, MANY_DAYS):
        store = lakehouse_of_days(tmp_path / str(days), days)
        peaks.append(peak_kib(partial(work, store, days)))

    few, many = peaks
    assert many < few + MORE_OF_DAYS_KIB


def peak_kib(work: Callable[[], None]) -> int:
    """The most memory that Python's objects take meanwhile."""
    work()  # what a first call alone needs, such as caches
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] // 1024
    finally:
        tracemalloc.stop()
