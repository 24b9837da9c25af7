"""Old history is deleted, and reconciliation, restores, proofs, streams and readers give the same results as before."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from gamelake.delta.log.codec import entry_path
from gamelake.delta.log.history_checkpoints import read_log_checkpoint
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.rewrites import maintenance_lease
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifest_checkpoints import TopicOffsets, read_manifest_checkpoint
from gamelake.ledger.manifests import Manifests, OffsetRange
from gamelake.ledger.reconciliation import Reconciliation, reconcile
from gamelake.maintenance import manifest_compaction
from gamelake.maintenance.log_cleanup import CleanupPlan, CleanupResult, LogCleanup
from gamelake.maintenance.manifest_compaction import joined
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.objects.leases import Lease, LeaseTiming
from gamelake.objects.store import Store
from gamelake.privacy.row_eraser import RowEraser
from gamelake.recovery.restore import TableRestore
from gamelake.recovery.table_history import RestoreError, TableHistory
from gamelake.scans.player_rows import PlayerFilter
from gamelake.streaming.driver.stream import Stream
from tests.support.job_processes import run_job
from tests.support.player_tables import BRONZE, SILVER, compact, players_in
from tests.support.stream_history import ALL_GAMES, STREAM, TABLES, StreamHistory

pytestmark = pytest.mark.usefixtures("checkpoints_at_once")

ANNA, BEN = "a" * 32, "b" * 32
NAMES = [table.name for table in TABLES]
# A log has a checkpoint at version 49, and another at 99.
FIRST, LATER = 60, 50


@pytest.fixture
def history(tmp_path: Path) -> StreamHistory:
    return StreamHistory(tmp_path / "lake")


def clean_up(
    history: StreamHistory, since: datetime, **options: dict[str, int] | int | datetime
) -> list[CleanupResult]:
    cleanup = LogCleanup(store=history.store, since=since, **{"keep_manifests": 1, **options})  # type: ignore[arg-type]
    return [plan.carry_out(history.store) for plan in cleanup.plans(NAMES)]


def entries(store: Store, table: str) -> list[int]:
    names = [path.rsplit("/", 1)[-1] for path in store.paths(f"{table}/_delta_log")]
    return sorted(int(name.removesuffix(".json")) for name in names if name[:20].isdigit() and name.endswith(".json"))


def summary(reconciled: Reconciliation) -> tuple[object, ...]:
    return (
        reconciled.batches,
        reconciled.records,
        reconciled.silver_rows,
        dict(reconciled.dead_letters),
        reconciled.tables,
        reconciled.problems,
    )


def test_reconciliation_gives_the_same_result_after_its_sources_are_deleted(history: StreamHistory) -> None:
    since = history.take(FIRST)
    history.take(LATER)
    before = summary(reconcile(history.store))
    assert before[:3] == (FIRST + LATER, 2 * (FIRST + LATER), 2 * (FIRST + LATER))

    done = {each.what: each for each in clean_up(history, since)}

    assert summary(reconcile(history.store)) == before
    assert Manifests(history.store, STREAM).batches() == list(range(FIRST, FIRST + LATER))
    assert done[f"manifests of {STREAM}"].deleted_files == FIRST
    for table in TABLES:
        assert entries(history.store, table.name) == list(range(49, FIRST + LATER))
        assert done[table.name].deleted_files >= 49
        assert players_in(history.store, table) == {ANNA: FIRST + LATER, BEN: FIRST + LATER}
        assert len(DeltaTable(f"{history.store.location.uri}/{table.name}", version=55).file_uris()) == 56


def test_history_within_the_retention_is_compacted_and_stays(history: StreamHistory) -> None:
    start = datetime.now(UTC) - timedelta(days=1)
    yesterday = history.take(FIRST)
    history.take(5)
    before, log = summary(reconcile(history.store)), TableLog.read(history.store, SILVER.name)
    paths = history.store.paths("")

    clean_up(history, start, compact_before=yesterday)

    assert [path for path in history.store.paths("") if "/history/" not in path and "/leases/" not in path] == paths
    assert summary(reconcile(history.store)) == before
    after = TableLog.read(history.store, SILVER.name)
    assert (after.live, after.removed, after.adds, after.schema) == (log.live, log.removed, log.adds, log.schema)
    assert after.compacted_through == FIRST - 1
    # Files of compacted batches are no longer listed one by one.
    clean_up(history, start, compact_before=yesterday)
    assert len(TableLog.read(history.store, SILVER.name).appended) == 5
    assert TableHistory.read(history.store, SILVER.name).first == 0


def test_history_is_compacted_daily_before_and_after_it_is_deleted(history: StreamHistory) -> None:
    first = history.take(FIRST)
    clean_up(history, first)
    second = history.take(FIRST)
    clean_up(history, first, compact_before=second)
    third = history.take(LATER)
    before = summary(reconcile(history.store))

    clean_up(history, second, compact_before=third)

    assert summary(reconcile(history.store)) == before
    assert entries(history.store, SILVER.name)[0] == 99
    assert TableLog.read(history.store, SILVER.name).compacted_through == 2 * FIRST + LATER - 1
    assert TableHistory.read(history.store, SILVER.name).first == 2 * FIRST - 1
    clean_up(history, third, compact_before=second)
    assert summary(reconcile(history.store)) == before


def test_manifests_that_are_read_in_portions_give_the_same_checkpoint(
    history: StreamHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleanup = LogCleanup(store=history.store, since=history.take(FIRST), keep_manifests=1)
    whole = [plan.stream for plan in cleanup.plans(NAMES) if plan.stream is not None]

    monkeypatch.setattr(manifest_compaction, "_MANIFESTS_AT_ONCE", 7)

    assert [plan.stream for plan in cleanup.plans(NAMES) if plan.stream is not None] == whole
    assert [each.batches for each in whole] == [FIRST - 1]


def test_it_goes_on_run_after_run(history: StreamHistory) -> None:
    for _ in range(3):
        since = history.take(FIRST)
        before = summary(reconcile(history.store))
        clean_up(history, since)
        assert summary(reconcile(history.store)) == before
        assert clean_up(history, since)[-1].deleted_files == 0
    statement = read_manifest_checkpoint(history.store, STREAM)

    assert statement is not None
    assert statement.through == 3 * FIRST - 2
    assert [(each.taken.first, each.taken.last) for each in statement.offsets] == [(0, 2 * (3 * FIRST - 1) - 1)]
    # Files of compacted batches are no longer listed one by one.
    former = read_log_checkpoint(history.store, SILVER.name)
    assert former is not None
    assert len(former.appended) < FIRST + 10
    assert len(history.store.paths("_gamelake/history")) == 4


def test_a_dry_run_changes_nothing_and_says_what_would_go(history: StreamHistory) -> None:
    since = history.take(FIRST)
    paths = history.store.paths("")

    planned = [plan.account() for plan in LogCleanup(store=history.store, since=since, keep_manifests=1).plans(NAMES)]

    assert history.store.paths("") == paths
    assert planned == clean_up(history, since)


def test_the_newest_manifests_stay_however_old_they_are(history: StreamHistory) -> None:
    clean_up(history, history.take(30), keep_manifests=10)

    assert Manifests(history.store, STREAM).batches() == list(range(20, 30))
    last = Manifests(history.store, STREAM).last(1)[0]
    assert last.batch_id == 29


def test_a_log_without_a_checkpoint_stays_and_is_no_obstacle(history: StreamHistory) -> None:
    clean_up(history, history.take(30))

    assert entries(history.store, SILVER.name) == list(range(30))
    assert len(Manifests(history.store, STREAM).batches()) == 1
    assert reconcile(history.store).problems == []


def test_what_does_not_reconcile_is_not_compacted(history: StreamHistory) -> None:
    history.take(20)
    lost = history.decide([ANNA, BEN])
    since = history.take(FIRST)
    before = reconcile(history.store).problems
    assert len(before) == len(TABLES)

    clean_up(history, since)

    assert reconcile(history.store).problems == before
    assert Manifests(history.store, STREAM).batches()[0] == lost.batch_id


def test_a_file_that_no_manifest_names_is_reported_after_as_before(history: StreamHistory) -> None:
    history.take(10)
    entry = (history.store.get(entry_path(SILVER.name, 9)) or b"").replace(b"query-0/9", b"query-9/9")
    stolen = entry.replace(b".parquet", b"-again.parquet").replace(b'"appId":"query-0"', b'"appId":"query-9"')
    history.store.put(entry_path(SILVER.name, 10), stolen)
    since = datetime.now(UTC)
    before = reconcile(history.store).problems
    assert len(before) == 1

    clean_up(history, since)

    assert reconcile(history.store).problems == before


@pytest.mark.parametrize("killed_after", range(1, 6))
def test_a_cleanup_that_is_killed_leaves_a_consistent_state(history: StreamHistory, killed_after: int) -> None:
    since = history.take(FIRST)
    before = summary(reconcile(history.store))
    plans = list(LogCleanup(store=history.store, since=since, keep_manifests=1).plans(NAMES))
    half = StoreThatEnds(history.store, killed_after * 9)

    with pytest.raises(KeyboardInterrupt):
        carry_out(plans, half)

    assert summary(reconcile(history.store)) == before
    assert players_in(history.store, SILVER) == {ANNA: FIRST, BEN: FIRST}
    clean_up(history, since)
    assert summary(reconcile(history.store)) == before
    assert entries(history.store, SILVER.name)[0] == 49


def carry_out(plans: list[CleanupPlan], store: Store) -> None:
    for plan in plans:
        plan.carry_out(store)


class StoreThatEnds(Store):
    """A store whose process is killed after a number of deletions."""

    def __init__(self, store: Store, deletions: int) -> None:
        super().__init__(store.location)
        self._left = deletions

    def delete(self, path: str) -> None:
        if "/leases/" not in path:
            if not self._left:
                raise KeyboardInterrupt
            self._left -= 1
        super().delete(path)


def test_entries_that_a_reader_needs_stay(history: StreamHistory) -> None:
    since = history.take(2 * FIRST)

    done = clean_up(history, since, needed_from={SILVER.name: 60})

    assert entries(history.store, SILVER.name)[0] == 49
    assert entries(history.store, BRONZE.name)[0] == 99
    [kept] = [each.kept for each in done if each.what == SILVER.name]
    assert "has only read version 60" in kept


def test_a_checkpoint_that_does_not_fit_the_entries_is_no_ground_to_stand_on(history: StreamHistory) -> None:
    since = history.take(FIRST)
    log = f"{SILVER.name}/_delta_log"
    other = next(path for path in history.store.paths(f"{ALL_GAMES.name}/_delta_log") if "checkpoint.parquet" in path)
    history.store.put(f"{log}/{49:020d}.checkpoint.parquet", history.store.get(other) or b"")

    done = clean_up(history, since)

    assert entries(history.store, SILVER.name) == list(range(FIRST))
    assert any("nothing is deleted" in each.kept for each in done)
    assert reconcile(history.store).problems == []


def test_compacted_and_replaced_files_are_known_as_before(history: StreamHistory) -> None:
    history.take(FIRST)
    compact(history.store)
    since = history.take(LATER)
    before = TableLog.read(history.store, SILVER.name)

    clean_up(history, since)

    after = TableLog.read(history.store, SILVER.name)
    assert (after.live, after.removed, after.adds) == (before.live, before.removed, before.adds)
    assert len(after.removed) == FIRST
    vacuum = TableVacuum(history.store, SILVER.name, datetime.now(UTC) + timedelta(hours=1))
    assert vacuum.run().replaced_files == FIRST
    clean_up(history, since)
    statement = read_log_checkpoint(history.store, SILVER.name)
    assert statement is not None
    assert statement.removed == {}
    assert reconcile(history.store).problems == []


def test_a_table_is_restored_within_the_kept_history_and_no_further(history: StreamHistory) -> None:
    since = history.take(FIRST)
    history.take(5)
    clean_up(history, since)
    read = TableHistory.read(history.store, SILVER.name)
    assert (read.first, read.newest) == (FIRST - 1, FIRST + 4)
    with pytest.raises(RestoreError, match="has versions 59 to 64, not 58"):
        read.at_version(FIRST - 2)
    with pytest.raises(RestoreError, match="is known since"):
        read.at_time(since - timedelta(hours=1))

    with maintenance_lease(history.store, SILVER.name) as lease:
        done = TableRestore(read, read.at_time(since)).commit(lease)

    assert (done.rows_removed, done.files_restored) == (10, 0)
    assert players_in(history.store, SILVER) == {ANNA: FIRST, BEN: FIRST}
    history.take(1)
    assert players_in(history.store, SILVER) == {ANNA: FIRST + 1, BEN: FIRST + 1}
    assert reconcile(history.store).problems == []


def test_the_proof_of_an_erasure_stays(history: StreamHistory) -> None:
    history.take(FIRST)
    RowEraser(history.store, SILVER, PlayerFilter(frozenset({ANNA})), "run-1").erase()
    since = history.take(LATER, players=(BEN, BEN))
    before = TableLog.read(history.store, SILVER.name).erasures
    assert [each.run for each in before] == ["run-1"]

    clean_up(history, since)

    assert TableLog.read(history.store, SILVER.name).erasures == before
    assert read_log_checkpoint(history.store, SILVER.name) is not None


def test_a_stream_is_rebuilt_from_what_is_left(history: StreamHistory) -> None:
    since = history.take(FIRST)
    before = Stream(history.store, STREAM, "events").next_offsets("t")

    clean_up(history, since)

    stream = Stream(history.store, STREAM, "events")
    assert stream.next_offsets("t") == before == {0: 2 * FIRST}
    assert stream.next_offsets("another topic") == {}
    assert stream.rebuild("t", reason="test").first_batch == FIRST


def test_batches_whose_events_are_remembered_stay(history: StreamHistory) -> None:
    since = history.take(30)
    history.store.put(f"_gamelake/streams/{STREAM}/events/{20:012d}-x", b"")

    clean_up(history, since)

    assert Manifests(history.store, STREAM).batches()[0] == 20


def test_a_table_that_was_made_again_does_not_stand_on_the_old_ones_statement(history: StreamHistory) -> None:
    since = history.take(FIRST)
    clean_up(history, since)
    for path in history.store.paths(SILVER.name):
        history.store.delete(path)
    again = history.decide([ANNA, BEN])
    with stream_tables(history.store.location) as anew:
        anew.append(again.tables[-1], again.transaction)

    assert read_log_checkpoint(history.store, SILVER.name) is None


def test_checkpoints_of_former_generations_and_claims_of_killed_holders_go(history: StreamHistory) -> None:
    history.take(2)
    history.begin_generation()
    last = history.begin_generation()
    folder = "_gamelake/leases/silver/x"
    for _ in range(2):
        with Lease(history.store, folder, "maintenance of x", LeaseTiming(renew=60)):
            pass
    history.store.put(f"{folder}/{1:012d}.claim", b"{}")

    clean_up(history, datetime.now(UTC) + timedelta(hours=1))

    left = history.store.paths(f"_gamelake/streams/{STREAM}/checkpoints")
    assert {path.rsplit("/", 1)[0] for path in left} == {last.checkpoint}
    assert all(f"{2:012d}" in path for path in history.store.paths(folder))


def test_offsets_that_follow_on_each_other_are_one() -> None:
    def taken(first: int, last: int, topic: str = "t") -> TopicOffsets:
        between = OffsetRange(partition=0, first=first, last=last, records=1)
        return TopicOffsets(topic="events", topic_id=topic, taken=between)

    result = joined([taken(4, 5), taken(0, 3), taken(7, 9), taken(0, 1, "u"), taken(9, 12)])

    assert [(each.topic_id, each.taken.first, each.taken.last, each.taken.records) for each in result] == [
        ("t", 0, 5, 2), ("t", 7, 9, 1), ("t", 9, 12, 1), ("u", 0, 1, 1),
    ]  # fmt: skip


def clean_logs(history: StreamHistory, *arguments: str) -> "subprocess.CompletedProcess[str]":
    variables = {"GAMELAKE_LAKEHOUSE": history.store.location.uri, "GAMELAKE_GAMES_FILE": "contracts/games.yaml"}
    return run_job("clean_logs", *arguments, **variables)


def test_the_job_refuses_to_forget_what_a_restore_may_ask_for(history: StreamHistory) -> None:
    history.take(1)

    assert clean_logs(history, "--retain-hours", "24", "--yes").returncode == 2
    assert clean_logs(history).returncode == 2
    young = clean_logs(history, "--yes")
    assert (young.returncode, json.loads(young.stdout)) == (0, [])
