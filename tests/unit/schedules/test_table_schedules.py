"""Programs that replace files of one table while a stream appends to it, in every order of their operations."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import cast

import pytest

from gamelake.delta import appends, commits, rewrites, tables
from gamelake.delta.appends import BatchTransaction
from gamelake.delta.log import codec as delta_log
from gamelake.delta.log.codec import object_path
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.rewrites import maintenance_lease
from gamelake.delta.tables import DeltaTables
from gamelake.ledger import clones
from gamelake.ledger.clones import CloneKind
from gamelake.maintenance import compaction
from gamelake.maintenance import vacuum as vacuuming
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.model.errors import GamelakeError
from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import clone_table
from gamelake.objects import leases
from gamelake.objects.store import Store
from gamelake.privacy import erasure, lake_erasure, row_eraser
from gamelake.privacy.erasure import PlayerErasure
from gamelake.privacy.erasure_records import ErasureRecords, ErasureRequest, Reach
from gamelake.privacy.lake_erasure import LakeErasure
from gamelake.privacy.row_eraser import RowEraser
from gamelake.privacy.vault.vault import Vault
from gamelake.recovery import cloning, restore
from gamelake.recovery.cloning import Cloning
from gamelake.recovery.restore import TableRestore
from gamelake.recovery.table_history import TableHistory
from gamelake.scans.player_rows import PlayerFilter
from tests.explorer.exploring import Case, effort, exhaustive, explore, sampled
from tests.explorer.simulation import SimulatedTime, simulate
from tests.explorer.tables import Lake, MemoryTable, Objects, paths_in, prepared, rows_in
from tests.explorer.world import Faults, ReplyLostError, World
from tests.support.player_tables import SILVER, an_entry, append

RULE = CompactionRule(target_bytes=10**6, hot_files=1, today=date(2026, 11, 22))
OLD, NEW = ["a" * 32, "b" * 32, "c" * 32], "d" * 32
RESTARTS = 4
EXPECTED = (GamelakeError, ReplyLostError)


@pytest.fixture(autouse=True)
def lake(monkeypatch: pytest.MonkeyPatch) -> Lake:
    simulate(monkeypatch, appends, commits, compaction, delta_log, leases, rewrites, tables)
    modules = (clones, cloning, compaction, erasure, lake_erasure, restore, row_eraser, rewrites, tables, vacuuming)
    lake = Lake(monkeypatch, *modules)
    monkeypatch.setattr(lake_erasure, "player_tables", lambda _: [SILVER])
    monkeypatch.setattr(compaction, "rows_of", lake.rows_of)
    return lake


def players_in(store: Store) -> Counter[str]:
    """Return how many rows each player has."""
    return Counter(rows_in(store, SILVER.name, SILVER.column))


@pytest.fixture
def template(lake: Lake) -> Objects:
    """A table with three small files."""

    def streams() -> None:
        with DeltaTables(lake.plain.location) as opened:
            for batch, player in enumerate(OLD):
                append(opened, lake.plain, SILVER, batch, [player])

    return prepared(lake, {}, streams)


def compactors(lake: Lake, template: Objects, count: int) -> Case:
    """So many processes that compact the table, and a stream that appends a batch."""

    def case(world: World) -> Callable[[], None]:
        lake.begin(world, template)
        plain = lake.plain
        entry = an_entry(plain, SILVER, [NEW])

        def stream() -> None:
            with DeltaTables(plain.location) as opened:
                opened.append(entry, BatchTransaction("query-0", len(OLD)))

        world.start("stream", stream, RESTARTS)
        for number in range(count):
            world.start(f"compaction {number}", TableCompaction(plain.location, SILVER.name, RULE), RESTARTS)

        def check() -> None:
            assert players_in(plain) == Counter([*OLD, NEW])
            require_expected(world)

        return check

    return case


def require_expected(world: World) -> None:
    """Check that processes ended with errors that supervisors know only."""
    unexpected = [error for _, error in world.errors if error and not isinstance(error, EXPECTED)]
    assert not unexpected, unexpected


def test_no_row_is_lost_or_doubled_by_two_compactions_and_a_stream_by_each_schedule_with_one_fault(
    lake: Lake, template: Objects
) -> None:
    faults, case = Faults(kills=1, stalls=1, lost_replies=1), compactors(lake, template, 2)

    assert explore(exhaustive(case, faults, 1), case, faults) > 50


def test_no_row_is_lost_or_doubled_by_two_compactions_and_a_stream_by_random_schedules(
    lake: Lake, template: Objects
) -> None:
    faults, case = Faults(kills=2, stalls=2, lost_replies=1), compactors(lake, template, 2)

    assert explore(sampled(case, faults, effort(20), 6), case, faults) > 30


def test_a_rewrite_that_ignores_what_others_have_replaced_meanwhile_is_found(
    lake: Lake, template: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrites, "only_appends", lambda _: True)
    monkeypatch.setattr(rewrites, "_require_newest", lambda *_: None)
    faults, case = Faults(stalls=1), compactors(lake, template, 2)

    with pytest.raises(AssertionError, match="Counter"):
        explore(exhaustive(case, faults, 1), case, faults)


@pytest.fixture
def compacted(lake: Lake, template: Objects) -> Objects:
    """The table after a compaction, whose replaced files are still there."""
    return prepared(lake, template, TableCompaction(lake.plain.location, SILVER.name, RULE))


def vacuum_and_restore(lake: Lake, compacted: Objects, vacuum: Callable[[Store], object]) -> Case:
    """A vacuum to which all replaced files are old enough, and a restore to the version before the compaction."""

    def case(world: World) -> Callable[[], None]:
        lake.begin(world, compacted)
        plain, store = lake.plain, lake.store

        def bring_back() -> None:
            with maintenance_lease(store, SILVER.name) as lease:
                history = TableHistory.read(store, SILVER.name)
                TableRestore(history, version=len(OLD) - 1).commit(lease)

        world.start("vacuum", lambda: vacuum(store), RESTARTS)
        world.start("restore", bring_back, RESTARTS)

        def check() -> None:
            assert players_in(plain) == Counter(OLD)
            assert sum(file.rows for file in TableLog.read(plain, SILVER.name).appended) == len(OLD)
            require_expected(world)

        return check

    return case


def vacuum(store: Store) -> TableVacuum:
    """A vacuum to which everything is old enough."""
    return TableVacuum(store, SILVER.name, datetime.now(UTC) + timedelta(days=1))


def test_no_live_file_is_deleted_by_a_vacuum_during_a_restore(lake: Lake, compacted: Objects) -> None:
    faults = Faults(kills=1, stalls=2, lost_replies=1)
    case = vacuum_and_restore(lake, compacted, lambda store: vacuum(store).run())

    assert explore(exhaustive(case, faults, 1), case, faults) > 50
    assert explore(sampled(case, faults, effort(20), 4), case, faults) > 30


def test_a_vacuum_that_decides_before_it_has_the_lease_is_found(lake: Lake, compacted: Objects) -> None:
    def decide_then_delete(store: Store) -> None:
        blocks = list(vacuum(store).unreferenced())
        with maintenance_lease(store, SILVER.name):
            for each in (each for files in blocks for each in files):
                store.delete(each.file.path)

    case = vacuum_and_restore(lake, compacted, decide_then_delete)

    with pytest.raises(AssertionError, match="live files are missing"):
        explore(exhaustive(case, Faults(), 1), case, Faults())


def test_a_restore_that_adds_files_again_which_a_vacuum_may_still_delete_is_found(
    lake: Lake, compacted: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "may_be_vacuumed", lambda *_: False)
    faults = Faults(kills=1)
    case = vacuum_and_restore(lake, compacted, lambda store: vacuum(store).run())

    with pytest.raises(AssertionError, match="live files are missing"):
        explore(exhaustive(case, faults, 1), case, faults)


def vacuum_and_clone(lake: Lake, compacted: Objects) -> Case:
    """A vacuum to which all replaced files are old enough, and a shallow clone of the version before the compaction."""

    def case(world: World) -> Callable[[], None]:
        lake.begin(world, compacted)
        plain, store = lake.plain, lake.store

        def clone() -> None:
            moment, sources = (lambda _: len(OLD) - 1), [SILVER.name]
            Cloning(store=store, name="copy", sources=sources, moment=moment, kind=CloneKind.SHALLOW).make()

        world.start("vacuum", lambda: vacuum(store).run(), RESTARTS)
        world.start("clone", clone)

        def check() -> None:
            table = clone_table("copy", SILVER.name)
            named = [object_path(plain.location, table, each) for each in paths_in(plain, table)]
            missing = plain.missing(named)
            assert not missing, f"files of the clone are missing: {missing}"
            require_expected(world)

        return check

    return case


def test_no_file_of_a_clone_is_deleted_by_a_vacuum(lake: Lake, compacted: Objects) -> None:
    faults, case = Faults(kills=1, stalls=1, lost_replies=1), vacuum_and_clone(lake, compacted)
    more = Faults(kills=1, stalls=2, lost_replies=1)

    assert explore(exhaustive(case, faults, 1), case, faults) > 50
    assert explore(sampled(case, more, effort(10), 4), case, more) > 10


def test_a_clone_that_references_files_which_a_vacuum_may_still_delete_is_found(
    lake: Lake, compacted: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cloning, "_must_copy", lambda *_: False)
    faults, case = Faults(stalls=1), vacuum_and_clone(lake, compacted)

    with pytest.raises(AssertionError, match="files of the clone are missing"):
        explore(exhaustive(case, faults, 1), case, faults)


ERASED = PlayerFilter(frozenset({OLD[0]}))


@pytest.fixture
def erased(lake: Lake, template: Objects) -> Objects:
    """The table after an erasure of the rows of a player, whose replaced file is still there."""
    eraser = partial(RowEraser, table=SILVER, player_filter=ERASED, run="first")
    return prepared(lake, template, lambda: eraser(lake.store).erase())


def erasure_and_compaction(lake: Lake, template: Objects) -> Case:
    """An erasure of a player, a compaction, and a stream that appends a batch of another one."""

    def case(world: World) -> Callable[[], None]:
        lake.begin(world, template)
        plain, store = lake.plain, lake.store
        entry = an_entry(plain, SILVER, [NEW])

        def stream() -> None:
            with DeltaTables(plain.location) as opened:
                opened.append(entry, BatchTransaction("query-0", len(OLD)))

        world.start("compaction", TableCompaction(plain.location, SILVER.name, RULE), RESTARTS)
        world.start("erasure", lambda: RowEraser(store, SILVER, ERASED, "run").erase(), RESTARTS)
        world.start("stream", stream, RESTARTS)

        def check() -> None:
            assert players_in(plain) == Counter([*OLD[1:], NEW])
            assert TableLog.read(plain, SILVER.name).erased_rows == 1
            require_expected(world)

        return check

    return case


def test_an_erasure_deletes_the_rows_of_its_player_alone_though_files_are_compacted(
    lake: Lake, template: Objects
) -> None:
    faults, case = Faults(kills=1, stalls=1, lost_replies=1), erasure_and_compaction(lake, template)

    assert explore(exhaustive(case, faults, 1), case, faults) > 50
    assert explore(sampled(case, faults, effort(20), 5), case, faults) > 30


def test_an_erasure_that_ignores_what_others_have_replaced_meanwhile_is_found(
    lake: Lake, template: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrites, "only_appends", lambda _: True)
    monkeypatch.setattr(rewrites, "_require_newest", lambda *_: None)
    faults, case = Faults(stalls=1), erasure_and_compaction(lake, template)

    with pytest.raises(AssertionError, match="Counter"):
        explore(exhaustive(case, faults, 1), case, faults)


def purge_and_restore(lake: Lake, erased: Objects) -> Case:
    """An erasure that deletes the replaced file, and a restore to the version before the erasure."""

    def case(world: World) -> Callable[[], None]:
        lake.begin(world, erased)
        plain, store = lake.plain, lake.store
        request = ErasureRequest.new("a role", "Kart Rumble", tuple(ERASED.pseudonyms), Reach.FILES)

        def purge() -> None:
            run = PlayerErasure(cast("Vault", None), store, timedelta(0), lambda _: True)
            ours = LakeErasure(store, request, Failpoints(), [SILVER])
            run._purge(ours)  # noqa: SLF001 # the part of an erasure that deletes files

        def bring_back() -> None:
            with maintenance_lease(store, SILVER.name) as lease:
                history = TableHistory.read(store, SILVER.name)
                TableRestore(history, version=len(OLD) - 1).commit(lease)

        world.start("purge", purge, RESTARTS)
        world.start("restore", bring_back)

        def check() -> None:
            assert players_in(plain) in (Counter(OLD), Counter(OLD[1:]))
            require_expected(world)

        ErasureRecords(plain).begin(request)
        return check

    return case


def test_no_live_file_is_deleted_by_an_erasure_during_a_restore(lake: Lake, erased: Objects) -> None:
    faults, case = Faults(kills=1, stalls=1, lost_replies=1), purge_and_restore(lake, erased)

    assert explore(exhaustive(case, faults, 1), case, faults) > 50
    assert explore(sampled(case, faults, effort(30), 4), case, faults) > 30


def test_a_restore_that_adds_files_again_which_an_erasure_may_still_delete_is_found(
    lake: Lake, erased: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ErasureRecords, "being_deleted", lambda *_: frozenset())
    faults, case = Faults(stalls=1), purge_and_restore(lake, erased)

    with pytest.raises(AssertionError, match="live files are missing"):
        explore(exhaustive(case, faults, 1), case, faults)


def vacuum_within_the_retention(lake: Lake, template: Objects) -> Case:
    """A compaction, a stream, and a vacuum after its retention but a third; clocks differ by less than that."""
    retention = timedelta(hours=1)

    def case(world: World) -> Callable[[], None]:
        two_hours_old = {path: (content, -7_200.0) for path, (content, _) in template.items()}
        lake.begin(world, two_hours_old)
        plain, store = lake.plain, lake.store

        def stream() -> None:
            entry = an_entry(store, SILVER, [NEW])
            with DeltaTables(plain.location) as opened:
                opened.append(entry, BatchTransaction("query-0", len(OLD)))

        def vacuum_later() -> None:
            world.sleep(max(0.0, 2 / 3 * retention.total_seconds() - world.now))
            assert store.folders("silver")
            now = datetime.fromtimestamp(SimulatedTime.time(), UTC)
            TableVacuum(store, SILVER.name, now - retention).run()

        world.start("compaction", TableCompaction(plain.location, SILVER.name, RULE), RESTARTS)
        world.start("stream", stream, RESTARTS)
        world.start("vacuum", vacuum_later, RESTARTS)

        def check() -> None:
            assert players_in(plain) == Counter([*OLD, NEW])
            for version in range(MemoryTable(plain, SILVER.name).version()):
                assert rows_in(plain, SILVER.name, SILVER.column, version)
            require_expected(world)

        return check

    return case


def test_each_version_within_the_retention_is_readable_though_clocks_jump(lake: Lake, template: Objects) -> None:
    faults, case = Faults(clock_jumps=1), vacuum_within_the_retention(lake, template)
    more = Faults(kills=1, stalls=1, lost_replies=1, clock_jumps=3)

    assert explore(exhaustive(case, faults, 1), case, faults) > 50
    assert explore(sampled(case, more, effort(30), 5), case, more) > 50


def test_a_vacuum_that_goes_by_the_age_of_files_and_not_by_their_removal_is_found(
    lake: Lake, template: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuuming, "removal_times", lambda *_: {})
    case = vacuum_within_the_retention(lake, template)

    with pytest.raises(AssertionError, match="live files are missing"):
        explore(exhaustive(case, Faults(), 1), case, Faults())
