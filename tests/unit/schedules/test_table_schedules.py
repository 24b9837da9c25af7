"""Programs that replace files of one table while a stream appends to it, in every order of their operations."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from gamelake.maintenance import compaction
from gamelake.maintenance import vacuum as vacuuming
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.model.errors import GamelakeError
from gamelake.recovery import restore
from gamelake.recovery.restore import TableRestore
from gamelake.recovery.table_history import TableHistory
from gamelake.storage import appends, commits, leases, rewrites, tables
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.delta_log import FileEntry, live_files
from gamelake.storage.rewrites import maintenance_lease
from gamelake.storage.store import Location, Store
from gamelake.storage.table_log import TableLog
from gamelake.storage.tables import DeltaTables, open_table
from tests.explorer.exploring import Case, effort, exhaustive, explore, sampled
from tests.explorer.simulation import ScheduledStore, simulate
from tests.explorer.world import Faults, ReplyLostError, World, calling_world
from tests.player_tables import SILVER, an_entry, append, players_in, store_in

RULE = CompactionRule(target_bytes=10**6, hot_files=1, today=date(2026, 11, 22))
OLD, NEW = ["a" * 32, "b" * 32, "c" * 32], "d" * 32
RESTARTS = 4
EXPECTED = (GamelakeError, ReplyLostError)


@pytest.fixture(autouse=True)
def _simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(monkeypatch, appends, commits, compaction, leases, rewrites, tables)
    for module in (compaction, tables):
        monkeypatch.setattr(module, "Store", lambda location: ScheduledStore(Store(location)))
    for module in (compaction, restore, rewrites, tables, vacuuming):
        monkeypatch.setattr(module, "open_table", _opened)


def _opened(location: Location, table: str, version: int | None = None) -> DeltaTable:
    return calling_world().perform(f"open {table}", lambda: open_table(location, table, version))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with three small files."""
    folder = tmp_path_factory.mktemp("template")
    store = store_in(folder)
    with DeltaTables(store.location) as opened:
        for batch, player in enumerate(OLD):
            append(opened, store, SILVER, batch, [player])
    return folder


def compactors(template: Path, folder: Path, count: int) -> Case:
    """So many processes that compact the table, and a stream that appends a batch."""

    def case(world: World) -> Callable[[], None]:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder)
        plain = store_in(folder)
        entry = an_entry(plain, SILVER, [NEW])

        def stream() -> None:
            with DeltaTables(plain.location) as opened:
                opened.append(entry, BatchTransaction("query-0", len(OLD)))

        world.start("stream", stream, RESTARTS)
        for number in range(count):
            world.start(f"compaction {number}", TableCompaction(plain.location, SILVER.name, RULE), RESTARTS)

        def check() -> None:
            assert players_in(plain, SILVER) == Counter([*OLD, NEW])
            unexpected = [error for _, error in world.errors if error and not isinstance(error, EXPECTED)]
            assert not unexpected, unexpected

        return check

    return case


def test_no_row_is_lost_or_doubled_by_two_compactions_and_a_stream_by_each_schedule_with_one_fault(
    template: Path, tmp_path: Path
) -> None:
    faults, case = Faults(kills=1, stalls=1, lost_replies=1), compactors(template, tmp_path / "lake", 2)

    assert explore(exhaustive(case, faults, 1), case, faults) > 50


def test_no_row_is_lost_or_doubled_by_two_compactions_and_a_stream_by_random_schedules(
    template: Path, tmp_path: Path
) -> None:
    faults, case = Faults(kills=2, stalls=2, lost_replies=1), compactors(template, tmp_path / "lake", 2)

    assert explore(sampled(case, faults, effort(20), 6), case, faults) > 30


def test_a_rewrite_that_ignores_what_others_have_replaced_meanwhile_is_found(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrites, "only_appends", lambda _: True)
    monkeypatch.setattr(rewrites, "_require_newest", lambda *_: None)
    faults, case = Faults(stalls=1), compactors(template, tmp_path / "lake", 2)

    with pytest.raises(AssertionError, match="Counter"):
        explore(exhaustive(case, faults, 1), case, faults)


@pytest.fixture(scope="module")
def compacted(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table after a compaction, whose replaced files are still there."""
    folder = tmp_path_factory.mktemp("compacted") / "lake"
    shutil.copytree(template, folder)
    done = TableCompaction(store_in(folder).location, SILVER.name, RULE)()
    assert done.files_before == len(OLD)
    return folder


def vacuum_and_restore(compacted: Path, folder: Path, vacuum: Callable[[Store], object]) -> Case:
    """A vacuum to which all replaced files are old enough, and a restore to the version before the compaction."""

    def case(world: World) -> Callable[[], None]:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(compacted, folder)
        plain = store_in(folder)
        store = ScheduledStore(plain)

        def bring_back() -> None:
            with maintenance_lease(store, SILVER.name) as lease:
                history = TableHistory.read(store, SILVER.name)
                TableRestore(store, history, version=len(OLD) - 1).commit(lease)

        world.start("vacuum", lambda: vacuum(store), RESTARTS)
        world.start("restore", bring_back, RESTARTS)

        def check() -> None:
            missing = plain.missing([f"{SILVER.name}/{file.relative_path}" for file in live(plain)])
            assert not missing, f"live files are missing: {missing}"
            assert players_in(plain, SILVER) == Counter(OLD)
            assert sum(file.rows for file in TableLog.read(plain, SILVER.name).appended) == len(OLD)
            unexpected = [error for _, error in world.errors if error and not isinstance(error, EXPECTED)]
            assert not unexpected, unexpected

        return check

    return case


def live(store: Store) -> Sequence[FileEntry]:
    """The files of the table's newest version."""
    return live_files(open_table(store.location, SILVER.name))


def vacuum(store: Store) -> TableVacuum:
    """A vacuum to which everything is old enough."""
    return TableVacuum(store, SILVER.name, datetime.now(UTC) + timedelta(days=1))


def test_no_live_file_is_deleted_by_a_vacuum_during_a_restore(compacted: Path, tmp_path: Path) -> None:
    faults = Faults(kills=1, stalls=2, lost_replies=1)
    case = vacuum_and_restore(compacted, tmp_path / "lake", lambda store: vacuum(store).run())

    assert explore(exhaustive(case, faults, 1), case, faults) > 50
    assert explore(sampled(case, faults, effort(20), 4), case, faults) > 30


def test_a_vacuum_that_decides_before_it_has_the_lease_is_found(compacted: Path, tmp_path: Path) -> None:
    def decide_then_delete(store: Store) -> None:
        blocks = list(vacuum(store).unreferenced())
        with maintenance_lease(store, SILVER.name):
            for each in (each for files in blocks for each in files):
                store.delete(each.file.path)

    case = vacuum_and_restore(compacted, tmp_path / "lake", decide_then_delete)

    with pytest.raises(AssertionError, match="live files are missing"):
        explore(exhaustive(case, Faults(), 1), case, Faults())


def test_a_restore_that_adds_files_again_which_a_vacuum_may_still_delete_is_found(
    compacted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "UNFINISHED_VACUUMS", "nowhere")
    faults = Faults(kills=1)
    case = vacuum_and_restore(compacted, tmp_path / "lake", lambda store: vacuum(store).run())

    with pytest.raises(AssertionError, match="live files are missing"):
        explore(exhaustive(case, faults, 1), case, faults)
