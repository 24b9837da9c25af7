"""Lost manifests are written again from the traces of their batches, or refused where a batch is half there."""

from pathlib import Path

import pytest

from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.ledger.reconciliation import reconcile
from gamelake.model.errors import BackupError
from gamelake.recovery.manifest_recovery import RebuiltManifest, rebuild_manifests
from tests.support.stream_history import STREAM, StreamHistory


@pytest.fixture
def history(tmp_path: Path) -> StreamHistory:
    history = StreamHistory(tmp_path / "lake")
    history.take(5)
    return history


def forget_manifests(history: StreamHistory, after: int) -> list[BatchManifest]:
    lost = [each for each in Manifests(history.store, STREAM).last(100) if each.batch_id > after]
    for path in history.store.paths(f"_gamelake/streams/{STREAM}/manifests"):
        if int(path.rsplit("/", 1)[-1].split(".")[0]) > after:
            history.store.delete(path)
    return lost


@pytest.mark.parametrize("after", [-1, 1, 3])
def test_a_lost_manifest_is_what_it_was(history: StreamHistory, after: int) -> None:
    lost = forget_manifests(history, after)

    reported = list(rebuild_manifests(history.store))

    assert reported == [RebuiltManifest(stream=STREAM, batch=each.batch_id, records=2) for each in lost]
    again = [each for each in Manifests(history.store, STREAM).last(100) if each.batch_id > after]
    assert [each.offsets for each in again] == [each.offsets for each in lost]
    assert [sorted(each.tables, key=lambda entry: entry.table) for each in again] == [
        sorted(each.tables, key=lambda entry: entry.table) for each in lost
    ]
    assert reconcile(history.store).problems == []
    assert list(rebuild_manifests(history.store)) == []


def test_a_batch_that_is_in_some_tables_only_is_refused_with_what_to_do(history: StreamHistory) -> None:
    half = history.decide(["a" * 32, "b" * 32])
    with stream_tables(history.store.location) as tables:
        tables.append(half.tables[0], half.transaction)
    forget_manifests(history, 4)

    with pytest.raises(BackupError, match="--before-batch 5"):
        list(rebuild_manifests(history.store))
    assert Manifests(history.store, STREAM).batches() == [0, 1, 2, 3, 4]


def test_where_nothing_is_lost_nothing_is_written(history: StreamHistory) -> None:
    assert list(rebuild_manifests(history.store)) == []
