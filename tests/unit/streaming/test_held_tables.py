"""A table that refuses a batch is held back; all others continue, and it catches up once it is corrected."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.log.codec import Action, encode_entry, entry_path, entry_versions, object_path
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import open_table
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import BatchManifest
from gamelake.ledger.reconciliation import reconcile
from gamelake.maintenance.manifest_compaction import ManifestCompaction
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.model.errors import TableRefusedError
from gamelake.model.naming import BRONZE_EVENTS, SILVER_EVENTS, Horizon, game_table
from gamelake.objects.store import Store
from gamelake.observability.health import HealthVerdict, examine_held_tables
from gamelake.recovery.stuck_decisions import StuckDecisions
from gamelake.streaming.driver import batch_commits
from gamelake.streaming.driver.batch_commits import BatchCommits
from gamelake.streaming.driver.runner import finish_last_batch
from gamelake.streaming.driver.stream import Stream
from gamelake.streaming.files.decider import uncommitted_silver_files
from tests.support.logged import logged
from tests.support.manifests import files_of, offsets_of
from tests.unit.properties import examples
from tests.unit.streaming.damaged_logs import DAMAGED_ENTRIES, MISSING
from tests.unit.streaming.streams import TOPIC, TOPIC_ID, FailingStore, location_of, manifest_of

ARCHERY, BINGO = game_table("archery"), game_table("bingo")
TABLES = (BRONZE_EVENTS, SILVER_EVENTS, ARCHERY, BINGO)
REFUSED: Action = {
    "protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly", "rowTracking"]}
}
CORRECTED: Action = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly"]}}


class Driver:
    """A process that runs the stream: decides batches of one event of each game, and commits them."""

    def __init__(self, folder: Path, store: Store | None = None) -> None:
        self.store = store or Store(location_of(folder))
        self.stream = Stream(self.store, "ingest_events", TOPIC)
        self.tables = stream_tables(location_of(folder))
        finish_last_batch(self.stream, self.tables)
        self.generation = self.stream.open(TOPIC_ID)
        self.commits = BatchCommits(self.stream, self.tables)

    def take(self, batch: int, bingo: object = "") -> None:
        """Decide a batch, unless it is decided, and commit it; `bingo` is the score of bingo's event."""
        manifest = self.stream.manifests.read(batch) or self._decide(batch, bingo)
        self.commits.commit(manifest)

    def _decide(self, batch: int, bingo: object) -> BatchManifest:
        archery = pa.table({"event_id": [f"archery-{batch}"], "score": [""]})
        of_bingo = pa.table({"event_id": [f"bingo-{batch}"], "score": [bingo]})
        ids = pa.table({"event_id": [f"archery-{batch}", f"bingo-{batch}"]})
        rows = ((BRONZE_EVENTS, ids), (SILVER_EVENTS, ids), (ARCHERY, archery), (BINGO, of_bingo))
        manifest = manifest_of(
            self.generation,
            batch,
            written_at=datetime.now(UTC).isoformat(),
            offsets=(offsets_of(2 * batch, 2 * batch + 1),),
            tables=tuple(files_of(self.store, table, of_table) for table, of_table in rows),
        )
        return self.stream.manifests.settle(manifest)


def commit(store: Store, table: str, action: Action) -> None:
    """What another program commits to a table."""
    store.put(entry_path(table, entry_versions(store, table)[-1] + 1), encode_entry([action]))


def ids(store: Store, table: str) -> Counter[str]:
    return Counter(open_table(store.location, table).to_pyarrow_table()["event_id"].to_pylist())


def rows_in(store: Store, path: str) -> list[str]:
    ids: list[str] = pq.read_table(pa.BufferReader(store.get(path) or b""), columns=["event_id"])[
        "event_id"
    ].to_pylist()
    return ids


def once(game: str, batches: Sequence[int]) -> Counter[str]:
    """The events of a game's batches, each once."""
    return Counter(f"{game}-{batch}" for batch in batches)


@pytest.fixture(autouse=True)
def _each_batch_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_commits, "_RETRY_SECONDS", 0.0)


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    """It has committed one batch; then another program has switched a feature of bingo's table on."""
    driver = Driver(tmp_path)
    driver.take(0)
    commit(driver.store, BINGO, REFUSED)
    return driver


def test_all_other_tables_go_on_and_the_table_catches_up_once_it_is_corrected(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    for batch in (1, 2, 3):
        driver.take(batch)

    assert ids(driver.store, ARCHERY) == once("archery", range(4))
    assert ids(driver.store, BINGO) == once("bingo", [0])
    (held,) = driver.commits.held.values()
    assert (held.table, held.since) == (BINGO, 1)
    assert "rowTracking" in held.reason
    assert len(logged(caplog, "table_held_back")) == 1

    commit(driver.store, BINGO, CORRECTED)
    driver.take(4)

    assert ids(driver.store, BINGO) == once("bingo", range(5))
    assert driver.commits.held == driver.stream.held.all() == {}
    assert reconcile(driver.store).problems == []


def test_a_table_that_delta_rs_can_not_open_is_held_back_also_by_the_next_start(driver: Driver, tmp_path: Path) -> None:
    newer: Action = {"protocol": {"minReaderVersion": 4, "minWriterVersion": 8}}
    commit(driver.store, BINGO, newer)
    driver.take(1)
    started = Driver(tmp_path)
    assert started.tables.schema(BINGO) is None
    started.take(2)

    assert ids(driver.store, ARCHERY) == once("archery", range(3))
    assert driver.stream.held.all()[BINGO].batches == 2
    commit(driver.store, BINGO, CORRECTED)
    started.take(3)
    assert ids(driver.store, BINGO) == once("bingo", range(4))


def test_the_next_start_catches_up_without_a_further_batch(driver: Driver, tmp_path: Path) -> None:
    driver.take(1)
    driver.take(2)
    assert Driver(tmp_path).stream.held.all()[BINGO].since == 1

    commit(driver.store, BINGO, CORRECTED)
    Driver(tmp_path)

    assert ids(driver.store, BINGO) == once("bingo", range(3))
    assert driver.stream.held.all() == {}


def test_the_reconciliation_counts_rows_that_wait_and_the_doctor_names_the_table(driver: Driver) -> None:
    driver.take(1)
    driver.take(2)

    found = reconcile(driver.store)
    (finding,) = examine_held_tables(driver.store)

    assert found.problems == []
    assert found.held[0].startswith(f"{BINGO}: 2 rows in 2 files wait since batch 1 of ingest_events: ")
    assert finding.verdict is HealthVerdict.FAIL
    assert f"{BINGO}: ingest_events holds it back since batch 1" in finding.found


def test_vacuum_deletes_no_file_that_waits(driver: Driver) -> None:
    for batch in range(1, 5):
        driver.take(batch)

    vacuum = TableVacuum(driver.store, BINGO, datetime.now(UTC) + timedelta(days=1))
    assert [each for part in vacuum.unreferenced() for each in part] == []

    commit(driver.store, BINGO, CORRECTED)
    driver.take(5)
    assert ids(driver.store, BINGO) == once("bingo", range(6))


def test_log_cleanup_keeps_the_manifests_of_batches_that_wait(driver: Driver) -> None:
    driver.take(1)
    driver.take(2)
    logged_files = {table: TableLog.read(driver.store, table).appended for table in TABLES}

    compaction = ManifestCompaction.of(driver.store, "ingest_events", logged_files, Horizon.RETENTION)
    checkpoint = compaction.compact(datetime.now(UTC) + timedelta(days=1), keep=1)

    assert checkpoint is not None
    assert checkpoint.through == 0


def test_the_stream_of_files_finds_the_events_that_wait_for_silver(driver: Driver) -> None:
    commit(driver.store, SILVER_EVENTS, REFUSED)
    driver.take(1)
    driver.take(2)

    last, silver = driver.stream.last_manifest(), open_table(driver.store.location, SILVER_EVENTS)
    files = uncommitted_silver_files(driver.store, silver, last)
    paths = [object_path(driver.store.location, SILVER_EVENTS, file.relative_path) for file in files]
    found = [each for path in paths for each in rows_in(driver.store, path)]

    assert sorted(found) == sorted([*once("archery", [1, 2]), *once("bingo", [1, 2])])


def test_a_long_backlog_of_a_table_is_committed_in_parts_so_that_others_wait_only_so_long(driver: Driver) -> None:
    for batch in range(1, 5):
        driver.take(batch)
    commit(driver.store, BINGO, CORRECTED)

    last = driver.stream.last_manifest()
    assert last is not None
    manifests = [msgspec.structs.replace(last, batch_id=batch, tables=()) for batch in (5, 6, 7, 8)]
    seen = []
    for manifest in manifests:
        driver.commits.commit(manifest, catch_up_seconds=0)
        seen.append([(held.since, held.batches) for held in driver.commits.held.values()])

    assert seen == [[(2, 3)], [(3, 2)], [(4, 1)], []]
    assert ids(driver.store, BINGO) == once("bingo", range(5))


def test_a_table_with_a_column_of_another_type_is_held_back_too(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    driver.take(0)
    driver.take(1, bingo=7)
    driver.take(2)

    assert ids(driver.store, ARCHERY) == once("archery", range(3))
    assert ids(driver.store, BINGO) == once("bingo", [0])
    assert "score" in driver.stream.held.all()[BINGO].reason


@pytest.mark.parametrize("damage", [MISSING, *DAMAGED_ENTRIES])
def test_a_table_that_lacks_an_entry_of_its_log_holds_up_no_other_table_at_the_next_starts(
    tmp_path: Path, damage: str
) -> None:
    driver = Driver(tmp_path)
    for batch in range(3):
        driver.take(batch)
    damaged = entry_path(BINGO, 1)
    whole = driver.store.get(damaged) or b""
    driver.store.delete(damaged)
    if damage in DAMAGED_ENTRIES:
        driver.store.put(damaged, DAMAGED_ENTRIES[damage])

    for batch in (3, 4):
        Driver(tmp_path).take(batch)

    assert ids(driver.store, ARCHERY) == once("archery", range(5))
    driver.store.put(damaged, whole)
    Driver(tmp_path).take(5)
    assert ids(driver.store, BINGO) == once("bingo", range(6))
    assert driver.stream.held.all() == {}


@pytest.mark.parametrize("damage", DAMAGED_ENTRIES)
def test_a_damaged_entry_of_another_writer_holds_up_no_other_table_of_a_running_driver(
    tmp_path: Path, damage: str
) -> None:
    driver = Driver(tmp_path)
    driver.take(0)
    driver.store.put(entry_path(BINGO, 1), DAMAGED_ENTRIES[damage])

    for batch in (1, 2):
        driver.take(batch)

    assert ids(driver.store, ARCHERY) == once("archery", range(3))
    driver.store.put(entry_path(BINGO, 1), encode_entry([CORRECTED]))
    Driver(tmp_path).take(3)
    assert ids(driver.store, BINGO) == once("bingo", range(4))


def test_no_batch_is_appended_to_a_table_that_an_earlier_one_waits_for(driver: Driver) -> None:
    driver.take(1)
    driver.take(2)
    commit(driver.store, BINGO, CORRECTED)
    second = driver.stream.manifests.read(2)
    assert second is not None
    (entry,) = (each for each in second.tables if each.table == BINGO)

    with pytest.raises(TableRefusedError, match="waits for batch 1 of ingest_events"):
        stream_tables(driver.store.location).append(entry, second.transaction)

    driver.take(3)
    assert ids(driver.store, BINGO) == once("bingo", range(4))


class Step(StrEnum):
    """What may happen to a lakehouse between two batches, and in a batch."""

    TEXT = "a batch whose score is a text"
    NUMBER = "a batch whose score is a number"
    REFUSE = "another program switches a feature on"
    CORRECT = "another program switches it off"
    RESTART = "the driver starts again"
    COMMIT_STUCK = "an operator commits what is stuck"


@given(steps=st.lists(st.sampled_from(Step), max_size=12))
@examples(40)
def test_whatever_happens_to_a_table_no_row_is_lost_or_doubled(steps: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        driver, batches = Driver(Path(folder)), 0
        driver.take(0)
        for step in (*steps, Step.CORRECT, Step.COMMIT_STUCK, Step.RESTART):
            match step:
                case Step.TEXT | Step.NUMBER:
                    batches += 1
                    driver.take(batches, bingo=7 if step is Step.NUMBER else "")
                case Step.REFUSE | Step.CORRECT:
                    commit(driver.store, BINGO, REFUSED if step is Step.REFUSE else CORRECTED)
                case Step.RESTART:
                    driver = Driver(Path(folder))
                case Step.COMMIT_STUCK:
                    StuckDecisions(stream_tables(driver.store.location)).release()

        assert driver.stream.held.all() == {}
        for table, game in ((ARCHERY, "archery"), (BINGO, "bingo")):
            assert ids(driver.store, table) == once(game, range(batches + 1))
        assert reconcile(driver.store).problems == []


def test_a_batch_that_another_process_holds_back_is_not_overtaken(driver: Driver, tmp_path: Path) -> None:
    slow = Driver(tmp_path)
    driver.take(1)
    commit(driver.store, BINGO, CORRECTED)

    slow.commits.refresh()  # as it does for a batch that another process has decided
    slow.take(2)

    assert ids(driver.store, BINGO) == once("bingo", range(3))


@pytest.mark.parametrize("corrected_at", [1, 2, 3])
def test_a_process_that_dies_before_any_write_loses_and_doubles_no_row(tmp_path: Path, corrected_at: int) -> None:
    for writes in count():
        folder = tmp_path / str(writes)
        folder.mkdir()
        store = Store(location_of(folder))
        Driver(folder).take(0)
        commit(store, BINGO, REFUSED)
        dying = FailingStore(location_of(folder), 10**9)
        driver = Driver(folder, dying)
        dying.die_after(writes)
        has_died = False
        for batch in range(1, 4):
            if batch == corrected_at:
                commit(store, BINGO, CORRECTED)
            try:
                driver.take(batch)
            except ConnectionError:
                has_died = True
                driver = Driver(folder)
                driver.take(batch)
        if corrected_at == 3:
            Driver(folder)
        assert ids(store, ARCHERY) == once("archery", range(4)), writes
        assert ids(store, BINGO) == once("bingo", range(4)), writes
        assert reconcile(store).problems == [], writes
        if not has_died:
            return


def test_after_an_error_no_commit_of_the_batch_begins_or_runs_on(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, running, has_failed = list[str](), set[str](), Event()

    def append(entry: TableFiles, _: object) -> None:
        begun.append(entry.table)
        if entry.table == "0":
            has_failed.set()
            raise ConnectionError("no object store")
        running.add(entry.table)
        has_failed.wait(60)
        driver.tables.schema(ARCHERY)
        running.remove(entry.table)

    decided = driver.stream.manifests.read(0)
    assert decided is not None
    names = [str(number) for number in range(99)]
    tables = tuple(TableFiles(table=name, partition_by=(), schema="", files=()) for name in names)
    manifest = msgspec.structs.replace(decided, batch_id=1, tables=tables)
    with monkeypatch.context() as during:
        during.setattr(driver.tables, "append", append)
        with pytest.raises(ConnectionError):
            driver.commits.commit(manifest)

        assert not running
        assert len(begun) < len(tables)


@pytest.fixture
def failures(driver: Driver) -> list[str]:
    """The failed commits of the driver."""
    failures: list[str] = []
    driver.commits = BatchCommits(driver.stream, driver.tables, on_failure=lambda: failures.append("commit"))
    return failures


def unreachable(*_: object) -> object:
    raise ConnectionError("no object store")


def test_an_outage_of_the_store_holds_no_table_back(
    driver: Driver, failures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as during:
        during.setattr(driver.tables, "append", unreachable)
        with pytest.raises(ConnectionError):
            driver.take(1)

    assert driver.stream.held.all() == {}
    assert failures
    driver.take(1)
    assert ids(driver.store, ARCHERY) == once("archery", range(2))


def test_an_outage_while_a_table_catches_up_is_counted_as_a_failed_commit(
    driver: Driver, failures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.take(1)
    commit(driver.store, BINGO, CORRECTED)
    append = driver.tables.append

    def no_bingo(entry: TableFiles, transaction: BatchTransaction) -> object:
        return unreachable() if entry.table == BINGO else append(entry, transaction)

    with monkeypatch.context() as during:
        during.setattr(driver.tables, "append", no_bingo)
        with pytest.raises(ConnectionError):
            driver.take(2)

    assert failures == ["commit"]
    driver.take(2)
    assert ids(driver.store, BINGO) == once("bingo", range(3))


def test_an_erasure_that_fails_after_a_late_commit_is_counted_as_a_failed_commit(
    driver: Driver, failures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as during:
        during.setattr(batch_commits, "erase_again", unreachable)
        with pytest.raises(ConnectionError):
            driver.take(1)

    assert failures
    driver.take(1)
    assert ids(driver.store, ARCHERY) == once("archery", range(2))
