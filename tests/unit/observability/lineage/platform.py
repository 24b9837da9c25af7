"""A lakehouse as the jobs leave it, with their lineage."""

from collections.abc import Sequence
from pathlib import Path

from gamelake.contract.aggregates import AggregateSpec, Refresh
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, SILVER_EVENTS, game_table
from gamelake.model.options import LineageOptions
from gamelake.objects.store import Location
from gamelake.observability.lineage.emitter import lineage_emitter
from gamelake.observability.lineage.flow import (
    Flow,
    FlowEnd,
    RunKind,
    SchemaVersion,
    TableDataset,
    TopicDataset,
    tables,
)
from gamelake.observability.lineage.gold import flow_of
from gamelake.serving.gold.definition import define
from gamelake.serving.gold.refresh import GoldRefresh
from tests.unit.observability.lineage.tables import emit, lake, make_table

PLAYERS = AggregateSpec(
    name="player_agg",
    group_by=("gamer_id",),
    refresh=Refresh.MERGE,
    columns={"session_count": "count(*) FILTER (WHERE event_name = 'session_start')", "first": "min(event_time)"},
)
DAYS = AggregateSpec(
    name="daily_agg",
    group_by=("event_date",),
    refresh=Refresh.PARTITION,
    columns={"players": "count(DISTINCT gamer_id)"},
)


def lakehouse_with_lineage(folder: Path, games: Sequence[str]) -> Location:
    """A lakehouse of these games with the lineage of the ingest job, gold and a KPI query."""
    location = lake(folder)
    ids = frozenset({7})
    shared = [BRONZE_EVENTS, SILVER_EVENTS, DEAD_LETTERS, "gold/kpi_dau"]
    for path in [*shared, *map(game_table, games), *(f"gold/{game}_player_agg" for game in games)]:
        make_table(location, path, "event_id", "event_name", "gamer_id", "session_count")
    written = [FlowEnd(what=TableDataset(path), schema_ids=ids) for path in [*shared[:3], *map(game_table, games)]]
    topic = FlowEnd(what=TopicDataset("kafka:9092", "game-events"), schema_ids=ids)
    gold = [
        GoldRefresh(location, game_table(game), spec.table(game), define(spec))
        for game in games
        for spec in (PLAYERS, DAYS)
    ]
    ingest = Flow(
        job="ingest_events",
        description="Fans out.",
        kind=RunKind.STREAMING,
        query="q-1",
        inputs=(topic,),
        outputs=tuple(written),
    )
    kpis = Flow(
        job="kpis.dau",
        description="Counts.",
        kind=RunKind.STREAMING,
        inputs=tables(SILVER_EVENTS),
        outputs=tables("gold/kpi_dau"),
    )
    versions = lambda _: {7: SchemaVersion("game-events-value", 3)}  # noqa: E731
    with lineage_emitter(LineageOptions(), "ingest_events", location, versions) as job_lineage:
        job_lineage.emit(ingest)
    emit(location, *(flow_of(each, RunKind.STREAMING) for each in gold), job="gold")
    emit(location, kpis)
    return location
