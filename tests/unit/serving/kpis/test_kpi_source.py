"""The KPI query's rules about its source, its generations and its one driver, without Spark."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from gamelake.model.errors import DataLossError
from gamelake.model.naming import SILVER_EVENTS
from gamelake.serving.kpis.generations import KpiGeneration, KpiGenerations, SourceChangedError, SourceRevisedError
from gamelake.serving.kpis.source import SourceLog
from gamelake.storage.delta_log import entry_path
from tests.silver_events import BEGINNING, Event, Silver


@pytest.fixture
def silver(tmp_path: Path) -> Silver:
    silver = Silver(tmp_path)
    silver.append([Event(at=BEGINNING)])
    return silver


@pytest.fixture
def generation(silver: Silver) -> KpiGeneration:
    return KpiGenerations(silver.store).add("silver", 1, "test")


def commit(silver: Silver, version: int, **info: str) -> None:
    """A commit that takes out the file of version 0."""
    first = (silver.store.get(entry_path(SILVER_EVENTS, 0)) or b"").splitlines()
    add = next(json.loads(line)["add"] for line in first if b'"add"' in line)
    remove = {"path": add["path"], "dataChange": True, "deletionTimestamp": 0}
    entry = [{"commitInfo": {"timestamp": 0, **info}}, {"remove": remove}]
    assert silver.store.put_new(entry_path(SILVER_EVENTS, version), "\n".join(map(json.dumps, entry)).encode())


def test_appends_are_followed_and_remembered_across_starts(silver: Silver, generation: KpiGeneration) -> None:
    SourceLog(silver.store, generation).remember()
    silver.append([Event(at=BEGINNING)])

    log = SourceLog(silver.store, generation)
    log.follow()

    assert log.waiting_since() is not None
    log.taken(1)
    assert log.waiting_since() is None


@pytest.mark.parametrize("operation", ["DELETE", "MERGE"])
def test_a_commit_that_takes_rows_out_stops_the_query(
    silver: Silver, generation: KpiGeneration, operation: str
) -> None:
    log = SourceLog(silver.store, generation)
    commit(silver, 1, operation=operation)

    with pytest.raises(SourceChangedError, match=f"version 1.*{operation}.*--rebuild"):
        log.follow()

    assert issubclass(SourceChangedError, DataLossError)


@pytest.mark.parametrize("info", [{"operation": "RESTORE"}, {"operation": "WRITE", "gamelake.batch": "replay-7/0"}])
def test_restored_or_replayed_rows_require_a_rebuild(
    silver: Silver, generation: KpiGeneration, info: dict[str, str]
) -> None:
    log = SourceLog(silver.store, generation)
    commit(silver, 1, **info)

    with pytest.raises(SourceRevisedError, match="version 1"):
        log.follow()


def test_an_erasure_does_not_stop_the_query(silver: Silver, generation: KpiGeneration) -> None:
    log = SourceLog(silver.store, generation)
    commit(silver, 1, **{"operation": "DELETE", "gamelake.erasure": "run"})

    log.follow()


def test_a_change_while_nothing_ran_is_noticed_at_the_next_start(silver: Silver, generation: KpiGeneration) -> None:
    SourceLog(silver.store, generation).remember()
    commit(silver, 1, operation="RESTORE")

    with pytest.raises(SourceChangedError):
        SourceLog(silver.store, generation).check_is_whole()


def test_commits_that_were_cleaned_up_before_they_were_seen_stop_the_start(
    silver: Silver, generation: KpiGeneration
) -> None:
    log = SourceLog(silver.store, generation)
    for _ in range(2):
        silver.append([Event(at=BEGINNING)])
    DeltaTable(silver.folder / SILVER_EVENTS).create_checkpoint()
    for version in (0, 1):
        silver.store.delete(entry_path(SILVER_EVENTS, version))

    with pytest.raises(SourceChangedError, match="cleaned up beyond version 0"):
        log.check_is_whole()


def test_silver_that_was_made_again_is_another_source(silver: Silver, generation: KpiGeneration) -> None:
    with pytest.raises(SourceChangedError, match="made again"):
        KpiGenerations(silver.store).current("another table", 1)


def test_the_number_of_state_stores_stays_that_of_the_first_start(silver: Silver, generation: KpiGeneration) -> None:
    assert KpiGenerations(silver.store).current("silver", 8).partitions == generation.partitions
