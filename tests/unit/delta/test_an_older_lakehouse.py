"""Row 43 of the fault matrix: a lakehouse that an older version has written is read, continued, and kept up.

`tests/fixtures/lakehouse-0.1.tar.xz` is what version 0.1 left after two batches: nine events of two games and a record
that could not be read. It is never made again: the next version gets a fixture of its own.
"""

import json
import tarfile
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.log.codec import entry_path
from gamelake.delta.rewrites import maintenance_lease
from gamelake.delta.tables import CommitOutcome, DeltaTables, open_table
from gamelake.ledger.generations import Generation, Generations
from gamelake.ledger.manifests import Manifests
from gamelake.ledger.reconciliation import reconcile
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.model.errors import CheckpointError, StoreError, TopicRecreatedError
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Location, Store
from gamelake.recovery.restore import TableRestore
from gamelake.recovery.table_history import TableHistory
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.refresh import Refreshed
from gamelake.serving.gold.runner import GoldTables, attempt
from gamelake.streaming.driver.stream import Stream

TESTS = Path(__file__).parents[2]
STREAM, TOPIC = "ingest_events", "events"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    with tarfile.open(TESTS / "fixtures/lakehouse-0.1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return Store(Location(uri=(tmp_path / "lake").as_uri()))


def generation(store: Store) -> Generation:
    return Generations(store, STREAM).all()[-1]


def rows(store: Store) -> int:
    return len(open_table(store.location, SILVER_EVENTS).to_pyarrow_table())


def test_its_reconciliation_has_no_problems(store: Store) -> None:
    found = reconcile(store)

    assert found.problems == []
    assert (found.batches, found.records, found.silver_rows, sum(found.dead_letters.values())) == (2, 10, 9, 1)


def test_its_stream_continues_where_it_stopped(store: Store) -> None:
    ours, stream = generation(store), Stream(store, STREAM, TOPIC)

    assert stream.open(ours.topic_id) == ours
    assert sum(stream.folder(ours).offsets(1).values()) == 10
    last = Manifests(store, STREAM).read(1)
    assert last is not None
    with DeltaTables(store.location) as tables:
        outcomes = {tables.append(entry, last.transaction) for entry in last.tables}
    assert outcomes == {CommitOutcome.ALREADY_COMMITTED}


def test_its_stream_is_refused_with_a_remedy_if_the_topic_is_another_one(store: Store) -> None:
    with pytest.raises(TopicRecreatedError, match=r"rebuild_checkpoint"):
        Stream(store, STREAM, TOPIC).open("another")


def test_a_checkpoint_of_a_newer_format_is_refused_with_a_remedy(store: Store) -> None:
    path = f"{generation(store).checkpoint}/offsets/1"
    store.put(path, (store.get(path) or b"").replace(b"v1", b"v9", 1))

    with pytest.raises(CheckpointError, match=r"offsets/1: .*rebuild_checkpoint"):
        Stream(store, STREAM, TOPIC).open(generation(store).topic_id)


def test_a_table_of_a_newer_protocol_is_refused_with_a_remedy(store: Store) -> None:
    last = Manifests(store, STREAM).read(1)
    assert last is not None
    [entry] = [each for each in last.tables if each.table == SILVER_EVENTS]
    newest = open_table(store.location, SILVER_EVENTS).version()
    later = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]}}
    store.put(entry_path(SILVER_EVENTS, newest + 1), json.dumps(later).encode())

    with DeltaTables(store.location) as tables, pytest.raises(StoreError, match="Drop the table feature"):
        tables.append(entry, BatchTransaction("next", 0))


def test_it_can_be_maintained_and_queried(store: Store) -> None:
    rule = CompactionRule(target_bytes=2**20, hot_files=1, today=date(2100, 1, 1))
    contract = load_gold(TESTS.parent / "contracts/games.yaml")

    assert TableCompaction(store.location, SILVER_EVENTS, rule)().files_before >= 2
    assert rows(store) == 9
    results = [attempt(each) for each in GoldTables(store, contract).now()]
    assert [each for each in results if not isinstance(each, Refreshed)] == []
    with maintenance_lease(store, SILVER_EVENTS) as lease:
        TableRestore(store, TableHistory.read(store, SILVER_EVENTS), 0).commit(lease)
    assert rows(store) == 5
    vacuum = TableVacuum(store, SILVER_EVENTS, datetime.now(UTC))
    assert vacuum.run().replaced_files > 0
    assert reconcile(store).problems == []
