"""A silver table that is written as games write it, and what its aggregates must be."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from gamelake.contract.aggregates import AggregateSpec, Refresh
from gamelake.objects.store import Location, Store
from gamelake.privacy.row_eraser import RowEraser
from gamelake.scans.player_rows import PlayerFilter, player_table
from gamelake.scans.sql_engine import engine
from gamelake.serving.gold.definition import define
from gamelake.serving.gold.refresh import GoldRefresh, RefreshOutcome

SILVER = "silver/archery_duel_events"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("event_time", pa.timestamp("us", "UTC")),
        ("event_name", pa.string()),
        ("gamer_id", pa.string()),
        ("amount", pa.float64()),
        ("event_date", pa.date32()),
    ]
)
PLAYERS = AggregateSpec(
    name="player_agg",
    group_by=("gamer_id",),
    refresh=Refresh.MERGE,
    columns={
        "session_count": "count(*) FILTER (WHERE event_name = 'session_start')",
        "min_timestamp": "min(event_time)",
        "max_timestamp": "max(event_time)",
        "bookings": "sum(CAST(amount AS DECIMAL(18, 6)))",
    },
)
DAILY = AggregateSpec(
    name="daily",
    group_by=("event_date", "event_name"),
    refresh=Refresh.PARTITION,
    columns={"median_amount": "median(amount)", "players": "count(DISTINCT gamer_id)"},
)
HOURLY = AggregateSpec(
    name="hourly",
    group_by=("event_date", "hour", "event_name"),
    keys={"hour": "date_trunc('hour', event_time)"},
    refresh=Refresh.MERGE,
    columns={"events": "count(*)", "bookings": "sum(CAST(amount AS DECIMAL(18, 6)))"},
)
SPECS = (PLAYERS, DAILY, HOURLY)

Rows: TypeAlias = list[tuple[object, ...]]
Event: TypeAlias = tuple[str | None, int, float | None]


def append(lake: Location, events: Sequence[Event], day: int = 0) -> None:
    """Events as (player, minute, amount); every tenth minute begins a session."""
    moment = NOON + timedelta(days=day)
    rows = [
        {
            "event_time": moment + timedelta(minutes=minute),
            "event_name": "session_start" if minute % 10 == 0 else "level_started",
            "gamer_id": player,
            "amount": amount,
            "event_date": moment.date(),
        }
        for player, minute, amount in events
    ]
    write_deltalake(lake.child(SILVER), pa.Table.from_pylist(rows, SCHEMA), mode="append", partition_by=["event_date"])


def erase(lake: Location, table: str, player: str) -> None:
    """Delete a player's rows of one table, as the erasing job does; nothing if there is no such table."""
    store = Store(lake)
    with suppress(TableNotFoundError):
        found = player_table(store, table)
        assert found is not None
        RowEraser(store, found, PlayerFilter(frozenset({player})), "run").erase()


def silver(lake: Location) -> DeltaTable:
    return DeltaTable(lake.child(SILVER))


def refresh(lake: Location, spec: AggregateSpec = PLAYERS) -> RefreshOutcome:
    """Bring the gold table up to date."""
    return GoldRefresh(lake, SILVER, spec.table("archery_duel"), define(spec))().outcome


def gold(lake: Location, spec: AggregateSpec = PLAYERS) -> Rows:
    return _rows(gold_handle(lake, spec).to_pyarrow_table(), spec)


def gold_handle(lake: Location, spec: AggregateSpec) -> DeltaTable:
    return DeltaTable(lake.child(spec.table("archery_duel")))


def recomputed(lake: Location, spec: AggregateSpec = PLAYERS) -> Rows:
    """The rows that all of silver gives."""
    with engine(1) as sql:
        sql.give("silver", silver(lake).to_pyarrow_table())
        return _rows(sql.table(define(spec).over("silver")), spec)


def _rows(table: pa.Table, spec: AggregateSpec) -> Rows:
    columns = [table.column(name).to_pylist() for name in (*spec.group_by, *spec.columns)]
    return sorted(zip(*columns, strict=True), key=repr)
