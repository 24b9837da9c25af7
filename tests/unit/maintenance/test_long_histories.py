"""Maintenance of a table with a long history needs no more memory than that of a short one."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gamelake.maintenance.vacuum import TableVacuum
from gamelake.storage.store import Location, Store
from gamelake.storage.table_log import TableLog
from tests.long_history import TABLE, write_history

ROOT = Path(__file__).parents[3]
SHORT, LONG = 2_000, 6_000
# With a Python object for each file that was removed, 4,000 commits took 11 MiB.
MORE_KIB = 6 * 1024


def lakehouse(folder: Path, commits: int) -> Store:
    folder.mkdir()
    store = Store(Location(uri=folder.as_uri()))
    write_history(store, commits)
    return store


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
    command = [sys.executable, "-m", "tests.long_history", str(folder), "vacuum"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    grown, deleted = map(int, done.stdout.split())
    assert deleted == commits // 101 * 100
    return grown


def test_vacuums_memory_does_not_grow_with_the_history(tmp_path: Path) -> None:
    assert grown_kib(tmp_path / "long", LONG) < grown_kib(tmp_path / "short", SHORT) + MORE_KIB
