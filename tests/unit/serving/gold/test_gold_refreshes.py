"""Gold tables equal a full recompute of silver, whatever happened to silver in between."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gamelake.model.aggregates import AggregateSpec, Refresh
from gamelake.model.errors import ContractError
from gamelake.serving.gold.refresh import RefreshOutcome
from gamelake.storage.store import Location
from tests.unit.serving.gold.histories import DAILY, NOON, SCHEMA, SILVER, append, gold, recomputed, refresh, silver

GOLD = "gold/archery_duel_player_agg"


@pytest.fixture
def lake(tmp_path: Path) -> Location:
    return Location(uri=f"file://{tmp_path}")


def test_the_first_refresh_makes_the_table_from_all_of_silver(lake: Location) -> None:
    append(lake, [("ann", 0, None), ("ann", 3, 0.99), ("bob", 10, None)])

    assert refresh(lake) is RefreshOutcome.REBUILT
    assert gold(lake) == recomputed(lake)


def test_new_events_are_merged_and_nothing_new_is_no_commit(lake: Location) -> None:
    append(lake, [("ann", 0, None), ("bob", 10, 4.99)])
    refresh(lake)
    append(lake, [("ann", 20, 0.1), ("cid", 1, 0.2)], day=1)

    assert [refresh(lake), refresh(lake)] == [RefreshOutcome.MERGED, RefreshOutcome.UNCHANGED]
    assert gold(lake) == recomputed(lake)
    assert DeltaTable(lake.child(GOLD)).version() == 1


def test_deleted_events_leave_the_aggregates(lake: Location) -> None:
    append(lake, [("ann", 0, None), ("ann", 5, 1.0), ("bob", 10, 4.99), ("cid", 0, None)])
    refresh(lake)
    append(lake, [("ann", 30, 2.0)])
    silver(lake).delete("gamer_id = 'bob' OR amount = 1.0")

    assert refresh(lake) is RefreshOutcome.MERGED
    assert gold(lake) == recomputed(lake)
    assert "bob" not in {row[0] for row in gold(lake)}


def test_a_restored_table_takes_its_aggregates_back(lake: Location) -> None:
    append(lake, [("ann", 0, None)])
    refresh(lake)
    append(lake, [("ann", 30, 2.0), ("bob", 1, None)])
    refresh(lake)
    silver(lake).restore(0)
    append(lake, [("cid", 1, None)])

    assert refresh(lake) is RefreshOutcome.MERGED
    assert gold(lake) == recomputed(lake)


def test_a_compaction_of_silver_changes_nothing(lake: Location) -> None:
    append(lake, [("ann", 0, None)])
    refresh(lake)
    append(lake, [("ann", 30, 2.0)])
    silver(lake).optimize.compact()

    assert refresh(lake) is RefreshOutcome.MERGED
    assert gold(lake) == recomputed(lake)


def test_a_new_definition_makes_the_table_again(lake: Location) -> None:
    append(lake, [("ann", 0, None)])
    refresh(lake)
    spec = AggregateSpec(
        name="player_agg", group_by=("gamer_id",), refresh=Refresh.MERGE, columns={"events": "count(*)"}
    )

    assert refresh(lake, spec) is RefreshOutcome.REBUILT
    assert gold(lake, spec) == [("ann", 1)]


def test_a_median_is_computed_again_for_the_days_that_changed(lake: Location) -> None:
    append(lake, [("ann", 1, 1.0), ("bob", 2, 2.0)])
    append(lake, [("ann", 1, 1.0)], day=1)
    refresh(lake, DAILY)
    append(lake, [("bob", 1, 9.0)], day=1)

    assert refresh(lake, DAILY) is RefreshOutcome.PARTITIONS
    assert gold(lake, DAILY) == recomputed(lake, DAILY)


def test_sums_of_floating_point_numbers_are_refused_with_the_remedy(lake: Location) -> None:
    append(lake, [("ann", 1, 1.0)])
    spec = AggregateSpec(
        name="player_agg", group_by=("gamer_id",), refresh=Refresh.MERGE, columns={"bookings": "sum(amount)"}
    )

    with pytest.raises(ContractError, match="DECIMAL"):
        refresh(lake, spec)


def test_a_file_that_came_and_is_deleted_already_is_no_obstacle(lake: Location) -> None:
    append(lake, [("ann", 0, None)])
    refresh(lake)
    known = set(silver(lake).file_uris())
    append(lake, [("bob", 1, 2.0)])
    (came,) = set(silver(lake).file_uris()) - known
    silver(lake).delete("gamer_id = 'bob'")
    Path(came.removeprefix("file://")).unlink()

    assert refresh(lake) is RefreshOutcome.REBUILT
    assert gold(lake) == recomputed(lake)


def backlog(lake: Location, files: int, rows: int) -> int:
    """Commit files of events of 200 players; gives their size in memory, in bytes."""
    events = pa.table(
        {
            "event_time": pa.repeat(NOON, rows).cast(pa.timestamp("us", "UTC")),
            "event_name": pa.repeat("level_started", rows),
            "gamer_id": [f"player-{number % 200:06d}" for number in range(rows)],
            "amount": pa.repeat(1.0, rows),
            "event_date": pa.repeat(NOON.date(), rows),
        },
        schema=SCHEMA,
    )
    for _ in range(files):
        write_deltalake(lake.child(SILVER), events, mode="append", partition_by=["event_date"])
    return files * int(events.nbytes)


def test_a_backlog_is_read_in_parts_and_not_held_in_memory(lake: Location) -> None:
    append(lake, [("anna", 0, 1.0)])
    refresh(lake)
    size = backlog(lake, files=80, rows=20_000)
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    try:
        refresh(lake)
    finally:
        pa.set_memory_pool(usual)

    # What Arrow reads ahead is the same for a backlog of any size.
    assert counted.max_memory() < size // 2
    assert len(gold(lake)) == 201
