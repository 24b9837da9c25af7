"""Gold tables equal a full recompute of silver, whatever happened to silver in between."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from gamelake.contract.aggregates import AggregateSpec, Refresh
from gamelake.delta.log.codec import (
    add_action,
    contents_of,
    decode_entry,
    encode_entry,
    entry_path,
    live_files,
    now_milliseconds,
    remove_action,
)
from gamelake.delta.rewrites import write_replacement
from gamelake.model.errors import ContractError
from gamelake.objects.store import Location, Store
from gamelake.serving.gold.refresh import RefreshOutcome
from tests.unit.serving.gold.histories import (
    DAILY,
    HOURLY,
    NOON,
    PLAYERS,
    SCHEMA,
    SILVER,
    append,
    erase,
    gold,
    recomputed,
    refresh,
    silver,
)

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


def spoil(lake: Location, day: str) -> None:
    """Make a refresh fail that reads the day's files of silver."""
    for file in Path(lake.child(SILVER).removeprefix("file://")).glob(f"event_date={day}/*.parquet"):
        file.write_bytes(b"no Parquet")


def test_of_silver_only_the_days_of_deleted_events_are_read_again(lake: Location) -> None:
    append(lake, [("ann", 0, 1.0), ("bob", 70, 2.0)])
    append(lake, [("ann", 0, 4.0), ("bob", 70, 8.0)], day=1)
    refresh(lake, HOURLY)
    silver(lake).delete("gamer_id = 'bob' AND amount = 2.0")
    expected = recomputed(lake, HOURLY)
    spoil(lake, "2026-11-21")

    assert refresh(lake, HOURLY) is RefreshOutcome.MERGED
    assert gold(lake, HOURLY) == expected


def test_a_deletion_vector_since_the_last_refresh_means_a_rebuild(lake: Location) -> None:
    append(lake, [("ann", 0, None), ("bob", 10, 4.99)])
    refresh(lake)
    store, (old,), now = Store(lake), live_files(silver(lake)), now_milliseconds()
    rows = silver(lake).to_pyarrow_table().drop_columns(["event_date"])
    kept = add_action(write_replacement(store, SILVER, old, rows.filter(pc.field("gamer_id") == "ann")), now)["add"]
    remove = remove_action(old, now)["remove"]
    inline = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", "offset": 0}
    vector = {"deletionVector": inline | {"sizeInBytes": 40, "cardinality": 1}}
    whole = next(contents_of(decode_entry(store.get(entry_path(SILVER, 0)) or b""), "add"))
    # As Spark writes them: a deletion by a vector, then the purge, which changes no row.
    deleted = [{"remove": remove}, {"add": whole | vector}]
    purged = [{"remove": remove | vector | {"dataChange": False}}, {"add": kept | {"dataChange": False}}]
    for version, actions in enumerate((deleted, purged), 1):
        assert store.put_new(entry_path(SILVER, version), encode_entry(actions))

    assert refresh(lake) is RefreshOutcome.REBUILT
    assert gold(lake) == recomputed(lake)
    assert [row[0] for row in gold(lake)] == ["ann"]


def test_an_erased_player_costs_no_rebuild_though_the_old_files_are_gone(lake: Location) -> None:
    append(lake, [("ann", 0, 1.0), ("bob", 1, 2.0)])
    append(lake, [("bob", 2, 2.0)], day=1)
    for spec in (PLAYERS, DAILY):
        refresh(lake, spec)
    erase(lake, SILVER, "ann")
    silver(lake).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    erase(lake, PLAYERS.table("archery_duel"), "ann")
    append(lake, [("cid", 3, 4.0)])

    outcomes = [refresh(lake, spec) for spec in (PLAYERS, DAILY)]

    assert outcomes == [RefreshOutcome.MERGED, RefreshOutcome.PARTITIONS]
    assert [gold(lake, spec) for spec in (PLAYERS, DAILY)] == [recomputed(lake, spec) for spec in (PLAYERS, DAILY)]


def test_rows_of_an_erased_player_that_gold_had_not_seen_yet_do_not_come_back(lake: Location) -> None:
    append(lake, [("bob", 1, 2.0)])
    refresh(lake)
    append(lake, [("ann", 0, 1.0)])
    erase(lake, SILVER, "ann")
    erase(lake, PLAYERS.table("archery_duel"), "ann")

    refresh(lake)

    assert gold(lake) == recomputed(lake)
    assert [row[0] for row in gold(lake)] == ["bob"]


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


def test_of_a_table_by_day_only_the_days_of_files_that_are_gone_are_computed_again(lake: Location) -> None:
    for day in range(2):
        append(lake, [("ann", 0, 1.0), ("bob", 70, 2.0)], day)
    append(lake, [("ann", 0, 4.0)], day=2)
    refresh(lake, HOURLY)
    append(lake, [("bob", 0, 16.0), ("cid", 0, 16.0)])
    erase(lake, SILVER, "bob")
    silver(lake).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    append(lake, [("cid", 140, 32.0)], day=3)
    expected = recomputed(lake, HOURLY)
    spoil(lake, "2026-11-22")

    assert refresh(lake, HOURLY) is RefreshOutcome.MERGED
    assert gold(lake, HOURLY) == expected


def backlog(lake: Location, files: int, rows: int) -> int:
    """Commit files of events of 200 players. Return their size in memory, in bytes."""
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
    size = backlog(lake, files=120, rows=20_000)
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    try:
        refresh(lake)
    finally:
        pa.set_memory_pool(usual)

    # What Arrow reads ahead is the same for a backlog of any size: 36 to 44 MB, more on a busy machine.
    assert counted.max_memory() < size // 2
    assert len(gold(lake)) == 201
