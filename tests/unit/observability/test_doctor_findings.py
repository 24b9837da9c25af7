"""A lakehouse is examined: whatever is not well is named, with what to do, and nothing else is."""

import json
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gamelake.contract.games import MaintenancePolicy
from gamelake.ledger.generations import Generation, Generations
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import Manifests
from gamelake.objects.leases import Lease, LeaseTiming
from gamelake.objects.store import Store
from gamelake.observability.health import (
    HealthFinding,
    HealthVerdict,
    StreamState,
    examine_clocks,
    examine_leases,
    examine_stream,
    examine_tables,
    waiting_and_lost,
)
from gamelake.observability.retention_health import examine_backups, examine_retentions, shortest_log
from gamelake.recovery.backup_records import BackupRecord, BackupRecords
from tests.support.job_processes import run_job
from tests.support.manifests import a_manifest
from tests.support.player_tables import BRONZE, SILVER, append, store_in

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DAY = timedelta(days=1)
pytestmark = pytest.mark.usefixtures("checkpoints_at_once")

POLICY = MaintenancePolicy()
ENTRY = f"{SILVER.name}/_delta_log/{{version:020}}.json"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two tables of sixty batches each: their logs have a checkpoint at version 49."""
    store = store_in(tmp_path)
    # The checkpoint is made while the stream runs, of whatever version is the newest then.
    for batches in (range(50), range(50, 60)):
        with stream_tables(store.location) as tables:
            for batch in batches:
                append(tables, store, SILVER, batch, ["a" * 32])
    with stream_tables(store.location) as tables:
        append(tables, store, BRONZE, 0, ["b" * 32])
    return store


def verdicts(found: list[HealthFinding]) -> list[HealthVerdict]:
    return [finding.verdict for finding in found]


def of_tables(store: Store) -> list[HealthFinding]:
    return examine_tables(store, [BRONZE.name, SILVER.name])


def test_whole_tables_are_one_line(store: Store) -> None:
    [finding] = of_tables(store)

    assert str(finding) == "PASS tables: 2 are readable and whole, 61 files"


@pytest.mark.parametrize("damage", [b"", b'{"add": {'], ids=["emptied", "cut off"])
def test_a_damaged_entry_is_named(store: Store, damage: bytes) -> None:
    store.put(ENTRY.format(version=55), damage)

    _, bad = of_tables(store)

    assert bad.verdict is HealthVerdict.FAIL
    assert bad.found.startswith(f"{SILVER.name}: the entry of version 55 is ")
    assert bad.remedy


def test_a_hole_in_the_log_is_named(store: Store) -> None:
    store.delete(ENTRY.format(version=53))

    assert of_tables(store)[1].found == f"{SILVER.name}: its log lacks version 53"


def test_a_log_that_was_cleaned_up_to_its_checkpoint_is_whole(store: Store) -> None:
    for version in range(49):
        store.delete(ENTRY.format(version=version))

    assert verdicts(of_tables(store)) == [HealthVerdict.PASS]


def test_a_file_that_is_gone_is_named(store: Store) -> None:
    gone = next(path for path in store.paths(BRONZE.name) if path.endswith(".parquet"))
    store.delete(gone)

    assert f"1 of its files are gone, such as {gone.removeprefix(f'{BRONZE.name}/')}" in of_tables(store)[1].found


def test_the_defaults_of_the_policy_fit_with_a_week_of_kafka() -> None:
    assert verdicts(examine_retentions(POLICY, 30 * DAY, 7 * DAY)) == [HealthVerdict.PASS]
    assert verdicts(examine_retentions(POLICY, 30 * DAY, None)) == [HealthVerdict.PASS]


def test_each_contradiction_of_retentions_is_a_line_with_a_remedy(store: Store) -> None:
    found = examine_retentions(POLICY, 10 * DAY, DAY / 2)

    assert {finding.verdict for finding in found} == {HealthVerdict.FAIL}
    assert len(found) == 3
    assert all(finding.remedy for finding in found)


def test_a_table_that_lets_its_log_go_earlier_counts(store: Store) -> None:
    assert shortest_log(store, [SILVER.name]) == 30 * DAY
    first = store.get(ENTRY.format(version=0)) or b""
    changed = first.replace(b'"configuration":{', b'"configuration":{"delta.logRetentionDuration":"interval 2 days",')
    assert changed != first
    for version in range(60):
        store.delete(ENTRY.format(version=version))
    for path in store.paths(f"{SILVER.name}/_delta_log"):
        store.delete(path)
    store.put(ENTRY.format(version=0), changed)

    assert shortest_log(store, [BRONZE.name, SILVER.name]) == 2 * DAY


@dataclass(frozen=True)
class Backups:
    """Backups of some ages in hours, of a lakehouse that began some hours ago."""

    ages: tuple[float, ...]
    begun: float
    expected: HealthVerdict


@pytest.mark.parametrize(
    "case",
    [
        Backups((), 3, HealthVerdict.PASS),
        Backups((), 30, HealthVerdict.WARN),
        Backups((2, 26), 300, HealthVerdict.PASS),
        Backups((25, 49), 300, HealthVerdict.WARN),
        Backups((49,), 300, HealthVerdict.FAIL),
    ],
    ids=str,
)
def test_backups_are_judged_by_the_newest(case: Backups) -> None:
    made = [NOW - timedelta(hours=age) for age in case.ages]

    [finding] = examine_backups(made, POLICY, NOW, NOW - timedelta(hours=case.begun))

    assert finding.verdict is case.expected
    assert (finding.remedy == "make backup") == (case.expected is not HealthVerdict.PASS)


def test_the_lakehouse_knows_its_backups_until_they_are_deleted(store: Store) -> None:
    records = BackupRecords(store)
    for number in (2, 1):
        records.add(BackupRecord(name=f"b{number}", made_at=NOW - number * DAY, files=3, bytes=10))
    assert [each.name for each in records.all()] == ["b2", "b1"]

    records.delete("b2")

    assert records.times() == [NOW - DAY]


def a_stream(**changes: object) -> StreamState:
    usual: dict[str, object] = {"name": "ingest_events", "batches": 8, "last_batch_at": NOW - timedelta(seconds=4)}
    return StreamState(**(usual | changes))  # type: ignore[arg-type]


def test_a_stream_that_is_not_behind_is_healthy() -> None:
    [finding] = examine_stream(a_stream(waiting=1_234), NOW)

    assert str(finding) == "PASS streams: ingest_events: batch 7, 4 s ago; 1,234 records wait"


def test_a_stream_that_nothing_waits_for_may_be_long_ago() -> None:
    assert verdicts(list(examine_stream(a_stream(last_batch_at=NOW - 3 * DAY, waiting=0), NOW))) == [HealthVerdict.PASS]


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"waiting": 5, "last_batch_at": NOW - timedelta(minutes=6)}, "make logs S=ingest-events"),
        ({"same_topic": False}, "--new-topic"),
        ({"lost": 70}, "--skip-lost"),
    ],
)
def test_a_stream_that_can_not_go_on_says_how_it_can(changes: dict[str, object], remedy: str) -> None:
    bad = [finding for finding in examine_stream(a_stream(**changes), NOW) if finding.verdict is HealthVerdict.FAIL]

    assert [remedy in finding.remedy for finding in bad] == [True]


def test_what_waits_and_what_is_lost_is_counted_by_partition() -> None:
    held = {0: (0, 10), 1: (50, 60), 2: (3, 8)}

    assert waiting_and_lost({0: 10, 1: 20}, held) == (10 + 5, 30)


def test_a_killed_holder_of_a_lease_is_named(store: Store) -> None:
    folder = "_gamelake/leases/silver/x"
    with Lease(store, folder, "maintenance of x", LeaseTiming(renew=60)):
        now = datetime.now(UTC)
        assert verdicts(examine_leases(store, now)) == [HealthVerdict.PASS]
        late = examine_leases(store, now + timedelta(minutes=2))
        assert verdicts(late) == [HealthVerdict.PASS, HealthVerdict.WARN]
        assert "leases/silver/x" in late[1].found
    assert verdicts(examine_leases(store, now + timedelta(minutes=2))) == [HealthVerdict.PASS]


@pytest.mark.parametrize(
    ("ahead", "verdict", "found"),
    [
        (timedelta(0), HealthVerdict.PASS, "agreed"),
        (timedelta(minutes=5), HealthVerdict.WARN, "300 s ahead of the store's"),
        (timedelta(minutes=-5), HealthVerdict.WARN, "300 s behind the store's"),
        (timedelta(days=-1), HealthVerdict.FAIL, "86400 s behind the store's"),
    ],
)
def test_a_driver_whose_clock_is_wrong_is_named(
    store: Store, ahead: timedelta, verdict: HealthVerdict, found: str
) -> None:
    manifest = a_manifest(written_at=(datetime.now(UTC) + ahead).isoformat())
    Manifests(store, "ingest_events").settle(manifest)

    [finding] = examine_clocks(store)

    assert finding.verdict is verdict
    assert found in finding.found


def doctor(store: Store, *arguments: str) -> "subprocess.CompletedProcess[str]":
    variables = {"GAMELAKE_GAMES_FILE": "contracts/games.yaml", "GAMELAKE_BOOTSTRAP_SERVERS": ""}
    return run_job("doctor", *arguments, GAMELAKE_LAKEHOUSE=store.location.uri, **variables)


def test_the_job_ends_with_what_it_found(store: Store) -> None:
    nothing = doctor(store)
    assert nothing.returncode == 2
    assert "there is nothing to examine" in nothing.stderr

    generation = Generation(
        stream="ingest_events", number=0, query_id="q", topic="events", topic_id="t", first_batch=0, reason="first",
        created_at=datetime.now(UTC).isoformat(),
    )  # fmt: skip
    Generations(store, "ingest_events").add(generation)
    well = doctor(store)
    assert (well.returncode, well.stderr) == (0, "")
    needs = [line.split()[1] for line in well.stdout.splitlines()]
    assert needs == ["retentions:", "streams:", "leases:", "tables:", "backups:", "reconciliation:"]

    store.put(ENTRY.format(version=55), b"")
    ill = doctor(store, "--json")
    assert ill.returncode == 1
    assert sum(finding["verdict"] == "FAIL" for finding in json.loads(ill.stdout)) == 1
