"""Files go that no version within the retention needs, and no other, whatever was killed or is still being written."""

import json
import os
import subprocess
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable

from gamelake.delta.rewrites import maintenance_lease
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.ledger.replay_manifests import ReplayManifest, ReplayManifests
from gamelake.maintenance.vacuum import TableVacuum, Vacuumed
from gamelake.model.errors import LeaseLostError
from gamelake.objects.leases import Lease, LeaseTiming
from gamelake.objects.store import Store
from gamelake.objects.vacuum_marks import begin_vacuum, end_vacuum, may_be_vacuumed
from gamelake.recovery.restore import TableRestore
from gamelake.recovery.table_history import RestoreError, TableHistory
from tests.support.eventually import eventually
from tests.support.interrupted_store import InterruptedStore
from tests.support.job_processes import run_job
from tests.support.manifests import a_manifest
from tests.support.player_tables import SILVER, an_entry, append, compact, players_in
from tests.support.silver_events import BEGINNING, Event, Silver

ANNA, BEN = "a" * 32, "b" * 32
OLD = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
AN_HOUR = timedelta(hours=1)
# Without heartbeats; and of a process that takes over from another one without them.
STALLED, IMPATIENT = LeaseTiming(renew=1_000), LeaseTiming(patience=0.1, poll=0.01)


@pytest.fixture
def compacted(store: Store, tables: DeltaTables) -> Store:
    """A lakehouse whose table has taken five batches, and was compacted then."""
    for batch in range(5):
        append(tables, store, SILVER, batch, [ANNA])
    compact(store)
    return store


def vacuum(store: Store, retention: timedelta = AN_HOUR) -> Vacuumed:
    return TableVacuum(store, SILVER.name, datetime.now(UTC) - retention).run()


def test_compacted_files_are_deleted_after_the_retention(compacted: Store) -> None:
    assert vacuum(compacted).replaced_files == 0
    done = vacuum(compacted, -AN_HOUR)

    assert (done.replaced_files, done.orphaned_files) == (5, 0)
    assert done.bytes > 0
    assert players_in(compacted, SILVER) == {ANNA: 5}
    assert sum(path.endswith(".parquet") for path in compacted.paths(SILVER.name)) == 1


def test_what_a_killed_batch_left_is_found(store: Store, tables: DeltaTables, tmp_path: Path) -> None:
    append(tables, store, SILVER, 0, [ANNA])
    [orphan] = an_entry(store, SILVER, [BEN]).files
    assert vacuum(store).orphaned_files == 0
    os.utime(tmp_path / SILVER.name / orphan.path, (OLD, OLD))

    done = vacuum(store)

    assert (done.replaced_files, done.orphaned_files, done.bytes) == (0, 1, orphan.size)
    assert players_in(store, SILVER) == {ANNA: 1}


def test_the_files_of_a_batch_that_is_decided_and_not_committed_stay(store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [ANNA])
    entry = an_entry(store, SILVER, [BEN])
    Manifests(store, "ingest_events").settle(manifest(entry))

    assert vacuum(store, -AN_HOUR).orphaned_files == 0


def test_the_files_of_a_replay_that_was_killed_before_its_commits_stay(store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [ANNA])
    replay, manifests = ReplayManifest(number=3, tables=(an_entry(store, SILVER, [BEN]),)), ReplayManifests(store)
    manifests.settle(replay)
    assert vacuum(store, -AN_HOUR).orphaned_files == 0

    manifests.mark_done(replay)

    assert vacuum(store, -AN_HOUR).orphaned_files == 1


def test_an_old_version_can_be_read_until_the_retention_is_over(store: Store, tables: DeltaTables) -> None:
    for batch in range(3):
        append(tables, store, SILVER, batch, [ANNA])
    compact(store)

    vacuum(store)
    assert DeltaTable(store.location.child(SILVER.name), 1).to_pyarrow_table().num_rows == 2
    vacuum(store, -AN_HOUR)
    with pytest.raises(FileNotFoundError):
        DeltaTable(store.location.child(SILVER.name), 1).to_pyarrow_table()


def test_a_restore_between_the_plan_and_the_deletes_keeps_its_files(compacted: Store) -> None:
    job = TableVacuum(compacted, SILVER.name, datetime.now(UTC) + AN_HOUR)
    assert job.plan().replaced_files == 5

    with maintenance_lease(compacted, SILVER.name) as lease:
        TableRestore(TableHistory.read(compacted, SILVER.name), 4).commit(lease)

    # The compacted file is what the table no longer needs.
    assert job.run().replaced_files == 1
    assert players_in(compacted, SILVER) == {ANNA: 5}


def test_vacuum_deletes_nothing_once_another_process_has_its_lease(compacted: Store) -> None:
    with maintenance_lease(compacted, SILVER.name, LeaseTiming(renew=0.01)) as lease:
        compacted.put_new(f"_gamelake/leases/{SILVER.name}/{lease.token + 1:012d}.claim", b"{}")
        eventually(lambda: is_lost(lease))
        with pytest.raises(LeaseLostError, match="another process has taken over"):
            TableVacuum(compacted, SILVER.name, datetime.now(UTC) + AN_HOUR).delete(lease)

    assert sum(path.endswith(".parquet") for path in compacted.paths(SILVER.name)) == 6


def test_vacuum_decides_only_after_it_has_checked_its_lease_behind_its_mark(compacted: Store) -> None:
    """A process that took the lease over before the mark was there relies on the files that it finds."""
    with maintenance_lease(compacted, SILVER.name, STALLED) as lease:
        compacted.put_new(f"_gamelake/leases/{SILVER.name}/{lease.token + 1:012d}.claim", b"{}")
        with pytest.raises(LeaseLostError, match="another process has taken over"):
            TableVacuum(compacted, SILVER.name, datetime.now(UTC) + AN_HOUR).delete(lease)

    assert may_be_vacuumed(compacted, SILVER.name)
    assert sum(path.endswith(".parquet") for path in compacted.paths(SILVER.name)) == 6


def test_the_mark_of_a_killed_vacuum_goes_with_the_second_one_after_it(store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [ANNA])
    holding = maintenance_lease(store, SILVER.name, STALLED)
    begin_vacuum(store, SILVER.name, holding.__enter__())

    with maintenance_lease(store, SILVER.name, IMPATIENT) as second:
        assert second.took_over
        TableVacuum(store, SILVER.name, datetime.now(UTC)).delete(second)
    assert may_be_vacuumed(store, SILVER.name)

    vacuum(store)
    assert not may_be_vacuumed(store, SILVER.name)


@pytest.mark.parametrize("at", range(1, 20))
def test_a_restore_relies_on_no_file_that_a_stalled_vacuum_deletes_meanwhile(compacted: Store, at: int) -> None:
    """The vacuum's lease is taken over while it deletes; it ends before the n-th operation of the restore."""
    holding = maintenance_lease(compacted, SILVER.name, STALLED)
    stalled = holding.__enter__()
    begin_vacuum(compacted, SILVER.name, stalled)
    going = [
        file
        for files in TableVacuum(compacted, SILVER.name, datetime.now(UTC) + AN_HOUR).unreferenced()
        for file in files
    ]

    def end() -> None:
        for each in going:
            compacted.delete(each.file.path)
        end_vacuum(compacted, SILVER.name, stalled)

    interrupted = InterruptedStore(compacted.location, end)
    with maintenance_lease(compacted, SILVER.name, IMPATIENT) as lease, suppress(RestoreError):
        history = TableHistory.read(interrupted, SILVER.name)
        interrupted.interrupt(at)
        TableRestore(history, 4).commit(lease)

    assert players_in(compacted, SILVER) == {ANNA: 5}


def is_lost(lease: Lease) -> bool:
    try:
        lease.require()
    except LeaseLostError:
        return True
    return False


class TestTheJob:
    """As it is run."""

    @pytest.fixture
    def silver(self, tmp_path: Path) -> Silver:
        silver = Silver(tmp_path)
        for _ in range(3):
            silver.append([Event(at=BEGINNING)])
        return silver

    def start(self, silver: Silver, *options: str, **policy: float) -> "subprocess.CompletedProcess[str]":
        games = yaml.safe_load(Path("contracts/games.yaml").read_text())
        games["maintenance"] |= policy
        (silver.folder / "games.yaml").write_text(yaml.safe_dump(games))
        variables = {
            "GAMELAKE_LAKEHOUSE": silver.store.location.uri,
            "GAMELAKE_GAMES_FILE": str(silver.folder / "games.yaml"),
        }
        return run_job("vacuum", *options, **variables)

    def results(self, silver: Silver, *options: str) -> list[dict[str, Any]]:
        run = self.start(silver, *options)
        assert run.returncode == 0, run.stderr
        found: list[dict[str, Any]] = json.loads(run.stdout)
        return found

    def orphan(self, silver: Silver, days: float, table: str = "silver/events") -> Path:
        file = silver.folder / table / "event_date=2026-06-01/part-orphan.parquet"
        file.write_bytes(b"left by a killed batch")
        moment = (datetime.now(UTC) - timedelta(days=days)).timestamp()
        os.utime(file, (moment, moment))
        return file

    def test_a_dry_run_says_what_the_next_one_deletes(self, silver: Silver) -> None:
        orphan = self.orphan(silver, days=15)

        [would] = self.results(silver, "--dry-run")
        assert orphan.exists()
        [done] = self.results(silver, "--yes")

        assert not orphan.exists()
        assert (done["table"], done["orphaned_files"], done["bytes"]) == ("silver/events", 1, 22)
        assert would | {"kept_since": ""} == done | {"kept_since": ""}

    def test_younger_files_stay(self, silver: Silver) -> None:
        orphan = self.orphan(silver, days=13)

        assert self.results(silver, "--yes")[0]["orphaned_files"] == 0
        assert orphan.exists()

    def test_a_retention_within_the_restore_window_is_refused(self, silver: Silver) -> None:
        orphan = self.orphan(silver, days=30)

        refused = self.start(silver, "--retain-hours", "24", "--yes")

        assert refused.returncode == 2
        assert "silver/events: a restore (maintenance.restore_window_days) needs its versions since" in refused.stderr
        assert orphan.exists()

    def test_a_retention_shorter_than_a_query_is_refused(self, silver: Silver) -> None:
        refused = self.start(silver, "--retain-hours", "5", "--yes", restore_window_days=0.01)

        assert refused.returncode == 2
        assert "silver/events: a query (maintenance.longest_query_hours) needs its versions since" in refused.stderr

    def test_a_table_that_is_named_is_taken_by_force(self, silver: Silver) -> None:
        orphan = self.orphan(silver, days=0.5)

        [done] = self.results(silver, "--retain-hours", "1", "--force", "silver/events", "--yes")

        assert done["orphaned_files"] == 1
        assert not orphan.exists()

    def test_zero_is_never_a_retention(self, silver: Silver) -> None:
        refused = self.start(silver, "--retain-hours", "0", "--force", "silver/events", "--yes")

        assert refused.returncode == 2
        assert "must be more than 0" in refused.stderr

    def test_a_contract_that_keeps_less_than_it_promises_is_refused(self, silver: Silver) -> None:
        refused = self.start(silver, "--dry-run", retention_days=3)

        assert refused.returncode == 2
        assert "is shorter than the history that a restore or a query may need" in refused.stderr


def manifest(entry: TableFiles) -> BatchManifest:
    return a_manifest(batch_id=1, tables=(entry,))
