"""A damaged log entry is written again from its batch's manifest, and from nothing else."""

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from gamelake.delta.log.codec import entry_path
from gamelake.delta.tables import DeltaTables
from gamelake.ledger.generations import Generation, Generations
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.objects.store import Store
from gamelake.recovery.log_repair import LogRepair, RepairError
from tests.support.job_processes import run_job
from tests.support.manifests import a_manifest, offsets_of
from tests.support.player_tables import SILVER, an_entry, compact, players_in, store_in

NAME, STREAM = SILVER.name, "ingest_events"
PLAYERS = [letter * 32 for letter in "abcde"]
LONG_AGO = datetime.now(UTC) - timedelta(hours=1)


def decide(store: Store, batch: int, player: str, at: datetime = LONG_AGO) -> BatchManifest:
    manifest = a_manifest(
        stream=STREAM,
        batch_id=batch,
        topic_id="t",
        written_at=at.isoformat(),
        offsets=(offsets_of(batch, batch),),
        tables=(an_entry(store, SILVER, [player]),),
    )
    return Manifests(store, STREAM).settle(manifest)


def commit(tables: DeltaTables, manifest: BatchManifest) -> None:
    tables.append(manifest.tables[0], manifest.transaction)


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[DeltaTables]:
    with stream_tables(store_in(tmp_path).location) as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path, tables: DeltaTables) -> Store:
    """A table that has taken a batch of each player."""
    store = store_in(tmp_path)
    generation = Generation(
        stream=STREAM, number=0, query_id="query", topic="events", topic_id="t", first_batch=0, reason="first start",
        created_at=LONG_AGO.isoformat(),
    )  # fmt: skip
    Generations(store, STREAM).add(generation)
    for batch, player in enumerate(PLAYERS):
        commit(tables, decide(store, batch, player))
    return store


@pytest.mark.parametrize("version", [2, 4], ids=["in the middle", "the newest"])
@pytest.mark.parametrize("damage", [b"", b'{"add": {"path', b"null"], ids=["emptied", "cut off", "no entry"])
def test_an_entry_comes_back_as_it_was(store: Store, version: int, damage: bytes) -> None:
    before = [json.loads(line) for line in (store.get(entry_path(NAME, version)) or b"").splitlines()]
    store.put(entry_path(NAME, version), damage)

    [repaired] = LogRepair(store, NAME).repair()

    assert (repaired.version, repaired.batch, repaired.rows, repaired.files) == (version, f"query-0/{version}", 1, 1)
    assert players_in(store, SILVER) == dict.fromkeys(PLAYERS, 1)
    after = [json.loads(line) for line in (store.get(entry_path(NAME, version)) or b"").splitlines()]
    assert [sorted(each) for each in after] == [sorted(each) for each in before]
    assert after[2]["add"]["stats"] == before[2]["add"]["stats"]


def test_an_entry_that_is_gone_comes_back_too(store: Store) -> None:
    for version in (1, 3):
        store.delete(entry_path(NAME, version))

    assert [each.version for each in LogRepair(store, NAME).repair()] == [1, 3]
    assert players_in(store, SILVER) == dict.fromkeys(PLAYERS, 1)


def test_the_stream_goes_on_and_takes_no_batch_twice(store: Store, tables: DeltaTables) -> None:
    store.put(entry_path(NAME, 4), b"")
    last = decide(store, 5, "f" * 32)
    commit(tables, last)

    LogRepair(store, NAME).repair()
    commit(tables, last)

    assert players_in(store, SILVER) == dict.fromkeys([*PLAYERS, "f" * 32], 1)


def test_a_whole_log_is_left_alone(store: Store) -> None:
    # A batch that is decided and not committed yet is not damage.
    decide(store, 5, "f" * 32)

    assert LogRepair(store, NAME).dry_run() == []
    assert LogRepair(store, NAME).repair() == []


def test_what_was_no_batch_is_refused(store: Store) -> None:
    compact(store)
    store.put(entry_path(NAME, 5), b"{")

    with pytest.raises(RepairError, match="entry without a batch has no manifest"):
        LogRepair(store, NAME).repair()
    assert store.get(entry_path(NAME, 5)) == b"{"


@pytest.mark.parametrize("skew", [timedelta(0), timedelta(minutes=-10), timedelta(minutes=10)])
def test_a_batch_that_is_being_committed_is_not_taken_for_the_one_that_is_missing(
    store: Store, tables: DeltaTables, skew: timedelta
) -> None:
    compact(store)
    store.put(entry_path(NAME, 5), b"{")
    young = decide(store, 5, "f" * 32, at=datetime.now(UTC) + skew)
    waited: list[float] = []

    def commit_meanwhile(seconds: float) -> None:
        waited.append(seconds)
        # The driver that decided it puts it behind what it knows, as it knew the log before the damage.
        content = (store.get(entry_path(NAME, 4)) or b"").replace(b'"version":4', b'"version":5')
        store.put(entry_path(NAME, 6), content)

    with pytest.raises(RepairError):
        LogRepair(store, NAME).repair(commit_meanwhile)
    assert waited == [10]
    assert young.batch_id == 5


def test_batches_from_before_a_clean_up_are_not_missing(store: Store) -> None:
    DeltaTable(f"{store.location.uri}/{NAME}").create_checkpoint()
    for version in (0, 1):
        store.delete(entry_path(NAME, version))
    store.put(entry_path(NAME, 3), b"")

    assert [each.version for each in LogRepair(store, NAME).repair()] == [3]
    assert players_in(store, SILVER) == dict.fromkeys(PLAYERS, 1)


def test_the_first_entry_is_refused(store: Store) -> None:
    store.put(entry_path(NAME, 0), b"")

    with pytest.raises(RepairError, match="its first entry is damaged"):
        LogRepair(store, NAME).dry_run()


def test_the_job_says_first_what_it_would_write(store: Store) -> None:
    store.put(entry_path(NAME, 3), b"")

    def repair_log(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_job("repair_log", NAME, *arguments, GAMELAKE_LAKEHOUSE=store.location.uri)

    planned = json.loads(repair_log("--dry-run").stdout)
    assert store.get(entry_path(NAME, 3)) == b""
    assert json.loads(repair_log("--yes").stdout) == planned
    assert players_in(store, SILVER) == dict.fromkeys(PLAYERS, 1)
    assert repair_log().returncode == 2
