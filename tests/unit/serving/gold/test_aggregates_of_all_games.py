"""The aggregates of all games are tables of their own, and equal to a recompute however their events come."""

import random
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gamelake.contract.aggregates import AggregateSpec, Over
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Location, Store
from gamelake.scans.sql_engine import engine
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.definition import define
from gamelake.serving.gold.refresh import Refreshed, RefreshOutcome
from gamelake.serving.gold.runner import GoldTables, attempt
from tests.answers.figures import FIGURES
from tests.answers.lakehouse import SILVER_SCHEMA, row_of
from tests.answers.play import Event

CONTRACT = load_gold(Path("contracts/games.yaml"))
OF_ALL_GAMES = tuple(spec for spec in CONTRACT.aggregates if spec.over is Over.ALL_GAMES)


def append(lake: Location, events: list[Event]) -> None:
    rows = pa.Table.from_pylist([row_of(event) for event in events], SILVER_SCHEMA)
    write_deltalake(lake.child(SILVER_EVENTS), rows, mode="append", partition_by=["event_date"])


def refresh(lake: Location, spec: AggregateSpec) -> RefreshOutcome:
    [table] = GoldTables(Store(lake), msgspec.structs.replace(CONTRACT, aggregates=(spec,))).now()
    done = attempt(table)
    assert isinstance(done, Refreshed), done
    assert done.table == f"gold/{spec.name}"
    return done.outcome


def by_key(rows: pa.Table, spec: AggregateSpec) -> list[dict[str, object]]:
    columns = [*spec.group_by, *spec.columns]
    found: list[dict[str, object]] = (
        rows.select(columns).sort_by([(key, "ascending") for key in spec.group_by]).to_pylist()
    )
    return found


@pytest.mark.parametrize("spec", OF_ALL_GAMES, ids=lambda spec: spec.name)
def test_new_events_late_ones_too_are_merged_into_the_table_of_all_games(tmp_path: Path, spec: AggregateSpec) -> None:
    lake, chance = Location(uri=tmp_path.as_uri()), random.Random(1)
    events = sorted(FIGURES.events, key=lambda event: event.event_time)
    late = set(chance.sample(range(len(events)), len(events) // 10))
    in_time = [event for place, event in enumerate(events) if place not in late]

    append(lake, in_time[:1000])
    assert refresh(lake, spec) is RefreshOutcome.REBUILT
    for part in (in_time[1000:], [events[place] for place in late]):
        append(lake, part)
        assert refresh(lake, spec) is RefreshOutcome.MERGED

    with engine(1) as sql:
        sql.give("silver", DeltaTable(lake.child(SILVER_EVENTS)).to_pyarrow_table())
        recomputed = sql.table(define(spec).over("silver"))
    gold = DeltaTable(lake.child(f"gold/{spec.name}")).to_pyarrow_table()
    assert by_key(gold, spec) == by_key(recomputed, spec)
