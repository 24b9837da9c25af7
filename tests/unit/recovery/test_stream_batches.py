"""A batch is named by its stream and its id, and its records are found by its manifest."""

from pathlib import Path

import pyarrow as pa
import pytest

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.tables import DeltaTables
from gamelake.ledger.coordinates import CoordinateRange
from gamelake.ledger.manifests import FilesTaken, Manifests
from gamelake.ledger.replay_manifests import ReplayManifest, ReplayManifests
from gamelake.objects.store import Store
from gamelake.recovery.stream_batches import StreamBatches
from gamelake.recovery.table_history import RestoreError, TableHistory
from tests.support.manifests import a_manifest, offsets_of
from tests.support.player_tables import SILVER, add_stream, an_entry, entry_of, store_in

EVENTS, FILES = "ingest_events", "ingest_files"
_NOTIFICATION = 2**28
# Versions 0 to 11: the stream of files came to its batches 2 and 3 when the other one was at 7.
ORDER = (
    [("events-0", batch) for batch in range(4)]
    + [("files-0", batch) for batch in range(2)]
    + [("events-0", batch) for batch in range(4, 8)]
    + [("files-0", 2), ("files-0", 3)]
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = store_in(tmp_path)
    add_stream(store, EVENTS, "events")
    add_stream(store, FILES, "files")
    return store


def append(tables: DeltaTables, store: Store, *transactions: tuple[str, int]) -> None:
    for application, batch in transactions:
        tables.append(an_entry(store, SILVER, [f"{application}/{batch}"]), BatchTransaction(application, batch))


def before(store: Store, batch: int, stream: str | None = None) -> int:
    history = TableHistory.read(store, SILVER.name)
    applications = StreamBatches(store).applications_with([history], batch, stream)
    return history.before_batch(batch, applications)


def settle(store: Store, stream: str, batch: int, offsets: tuple[int, int], files: FilesTaken | None = None) -> None:
    manifest = a_manifest(
        stream=stream,
        query_id=stream.removeprefix("ingest_"),
        batch_id=batch,
        topic=stream,
        topic_id="id",
        offsets=(offsets_of(*offsets),),
        files=files,
    )
    Manifests(store, stream).settle(manifest)


def test_a_batch_of_two_streams_is_refused_until_its_stream_is_chosen(store: Store, tables: DeltaTables) -> None:
    append(tables, store, *ORDER)

    with pytest.raises(RestoreError, match=r"batch 2 may be one of ingest_events or of ingest_files.*--stream"):
        before(store, 2)

    assert before(store, 2, EVENTS) == 1
    assert before(store, 2, FILES) == 9


def test_a_batch_that_one_stream_alone_has_come_to_needs_no_choice(store: Store, tables: DeltaTables) -> None:
    append(tables, store, *ORDER)

    assert before(store, 5) == 6


def test_a_stream_that_has_passed_the_batch_without_rows_makes_it_ambiguous(store: Store, tables: DeltaTables) -> None:
    append(tables, store, ("events-0", 2), ("files-0", 5))

    with pytest.raises(RestoreError, match="--stream"):
        before(store, 2)


def test_transactions_of_other_writers_are_no_batches(store: Store, tables: DeltaTables) -> None:
    append(tables, store, ("events-0", 0), ("events-0", 1), ("replay-7", 0), ("gamelake-maintenance", 1))

    assert before(store, 1) == 0
    assert before(store, 0) == -1


def test_the_records_of_batches_are_those_of_their_source(store: Store) -> None:
    settle(store, EVENTS, 0, (3, 9))
    settle(store, EVENTS, 1, (10, 12))
    settle(store, FILES, 4, (7, 9), FilesTaken(objects={"taken": 3}, passed_over={}, records=3000, bytes=1))

    found = StreamBatches(store).coordinates(["events-0/0", "events-0/1", "files-0/4"], [SILVER.name])

    assert found == (
        CoordinateRange(EVENTS, 0, 3, 12),
        CoordinateRange(FILES, -1, 7 * _NOTIFICATION, 10 * _NOTIFICATION - 1),
    )


def test_a_batch_whose_manifest_is_gone_is_not_passed_over(store: Store) -> None:
    settle(store, EVENTS, 1, (0, 4))

    with pytest.raises(RestoreError, match=r"manifest of batch 0 of ingest_events was deleted.*jobs/backfill\.py"):
        StreamBatches(store).coordinates(["events-0/0", "events-0/1"], [SILVER.name])


@pytest.mark.parametrize(("offsets", "is_covered"), [((2, 3), True), ((2, 5), False)])
def test_a_replay_of_records_of_earlier_batches_is_not_passed_over(
    store: Store, offsets: tuple[int, int], is_covered: bool
) -> None:
    settle(store, EVENTS, 1, (0, 4))
    entry = entry_of(store, SILVER, pa.table({"kafka_partition": [0, 0], "kafka_offset": list(offsets)}))
    ReplayManifests(store).settle(ReplayManifest(number=3, tables=(entry,)))
    batches, transactions = StreamBatches(store), ["events-0/1", "replay-3/0"]

    if is_covered:
        assert batches.coordinates(transactions, [SILVER.name]) == (CoordinateRange(EVENTS, 0, 0, 4),)
    else:
        with pytest.raises(RestoreError, match=r"replay 3 wrote rows of batches from before.*jobs/backfill\.py"):
            batches.coordinates(transactions, [SILVER.name])
