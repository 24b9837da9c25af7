"""Aggregates of fields that not every game sends: a game without them has no table, and stops no other."""

import shutil
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gamelake.contract.aggregates import AggregateSpec, Over, Refresh
from gamelake.objects.store import Location
from gamelake.serving.gold.definition import define
from gamelake.serving.gold.refresh import GoldRefresh, RefreshOutcome

SILVER = "silver/archery_events"
DAYS = (date(2026, 11, 20), date(2026, 11, 21))
RESOURCE = pa.struct([("item", pa.string()), ("change", pa.int64()), ("reason", pa.string())])
ITEMS = AggregateSpec(
    name="items",
    group_by=("event_date", "item"),
    keys={"item": "resource.item"},
    requires=("resource.item", "resource.change"),
    refresh=Refresh.MERGE,
    columns={"gained": "sum(CAST(resource.change AS DECIMAL(18, 0))) FILTER (WHERE resource.change > 0)"},
)
BY_DAY = AggregateSpec(
    name="items_by_day",
    group_by=ITEMS.group_by,
    keys=ITEMS.keys,
    requires=ITEMS.requires,
    refresh=Refresh.PARTITION,
    columns={"gained": ITEMS.sql["gained"], "median": "median(resource.change)"},
)
Change = tuple[date, str, int]


@pytest.fixture
def lake(tmp_path: Path) -> Location:
    return Location(uri=f"file://{tmp_path}")


def folder(lake: Location, table: str) -> Path:
    return Path(lake.child(table).removeprefix("file://"))


def send(lake: Location, changes: Sequence[Change], with_resource: bool = True) -> None:
    # A column of the key's name that is another one.
    columns: dict[str, object] = {
        "event_date": pa.array([day for day, _, _ in changes], pa.date32()),
        "item": pa.repeat("of another kind", len(changes)),
    }
    if with_resource:
        resources = [{"item": item, "change": change, "reason": "shop"} for _, item, change in changes]
        columns["resource"] = pa.array(resources, RESOURCE)
    write_deltalake(
        lake.child(SILVER),
        pa.table(columns),
        mode="append",
        schema_mode="merge",
        partition_by=["event_date"],
    )


def refresh(lake: Location, spec: AggregateSpec = ITEMS) -> RefreshOutcome:
    return GoldRefresh(lake, SILVER, spec.table("archery"), define(spec))().outcome


def gold(lake: Location, spec: AggregateSpec = ITEMS) -> dict[tuple[date, str | None], int | None]:
    rows = DeltaTable(lake.child(spec.table("archery"))).to_pyarrow_table().to_pylist()
    return {(row["event_date"], row["item"]): None if row["gained"] is None else int(row["gained"]) for row in rows}


@pytest.mark.parametrize("spec", [ITEMS, BY_DAY])
def test_a_table_begins_with_the_first_event_that_has_the_field(lake: Location, spec: AggregateSpec) -> None:
    send(lake, [(DAYS[0], "gems", 1)], with_resource=False)

    assert refresh(lake, spec) is RefreshOutcome.NO_SOURCE
    assert not folder(lake, spec.table("archery")).exists()

    send(lake, [(DAYS[1], "gems", 5), (DAYS[1], "coins", -3)])

    assert refresh(lake, spec) is RefreshOutcome.REBUILT
    assert gold(lake, spec) == {(DAYS[0], None): None, (DAYS[1], "gems"): 5, (DAYS[1], "coins"): None}


def test_a_struct_that_lacks_a_field_makes_no_table(lake: Location) -> None:
    other = pa.struct([("item", pa.string())])
    rows = pa.table({"event_date": [DAYS[0]], "resource": pa.array([{"item": "gems"}], other)})
    write_deltalake(lake.child(SILVER), rows, partition_by=["event_date"])

    assert refresh(lake) is RefreshOutcome.NO_SOURCE


@pytest.mark.parametrize("spec", [ITEMS, BY_DAY])
def test_new_and_deleted_events_are_merged_by_the_field_of_a_struct(lake: Location, spec: AggregateSpec) -> None:
    send(lake, [(DAYS[0], "gems", 1), (DAYS[0], "coins", 7), (DAYS[1], "gems", 2)])
    refresh(lake, spec)
    send(lake, [(DAYS[0], "gems", 10)])
    DeltaTable(lake.child(SILVER)).delete("resource['change'] = 7")

    assert refresh(lake, spec) in {RefreshOutcome.MERGED, RefreshOutcome.PARTITIONS}
    assert gold(lake, spec) == {(DAYS[0], "gems"): 11, (DAYS[1], "gems"): 2}


@pytest.mark.parametrize("spec", [ITEMS, BY_DAY])
def test_the_table_is_empty_while_silver_lacks_the_field_again(lake: Location, spec: AggregateSpec) -> None:
    send(lake, [(DAYS[0], "gems", 1)], with_resource=False)
    send(lake, [(DAYS[1], "gems", 5)])
    refresh(lake, spec)
    shutil.rmtree(folder(lake, SILVER))
    send(lake, [(DAYS[0], "gems", 1)], with_resource=False)

    assert refresh(lake, spec) is RefreshOutcome.REBUILT
    assert gold(lake, spec) == {}

    send(lake, [(DAYS[1], "gems", 8)])

    assert refresh(lake, spec) is RefreshOutcome.REBUILT
    assert gold(lake, spec) == {(DAYS[0], None): None, (DAYS[1], "gems"): 8}


@pytest.mark.parametrize("how", [Refresh.MERGE, Refresh.PARTITION])
def test_a_column_that_an_older_table_of_all_games_lacks_is_null_until_the_table_has_it(
    lake: Location, how: Refresh
) -> None:
    by_country = AggregateSpec(
        name="by_country",
        over=Over.ALL_GAMES,
        group_by=("event_date", "country"),
        refresh=how,
        columns={"events": "count(*)"},
    )

    def computed() -> tuple[RefreshOutcome, list[tuple[str, int]]]:
        outcome = GoldRefresh(lake, "silver/events", "gold/by_country", define(by_country))().outcome
        rows = DeltaTable(lake.child("gold/by_country")).to_pyarrow_table().to_pylist()
        return outcome, sorted((row["country"] or "", row["events"]) for row in rows)

    def commit(columns: dict[str, object]) -> None:
        rows = pa.table({"event_date": pa.array([DAYS[0]], pa.date32()), "game_name": ["Archery Duel"], **columns})
        write_deltalake(
            lake.child("silver/events"), rows, mode="append", schema_mode="merge", partition_by=["event_date"]
        )

    commit({})
    assert computed() == (RefreshOutcome.REBUILT, [("", 1)])
    commit({})
    assert computed()[1] == [("", 2)]
    commit({"country": ["JP"]})
    assert computed()[1] == [("", 2), ("JP", 1)]
