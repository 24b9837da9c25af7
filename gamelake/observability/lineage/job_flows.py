"""The lineage of jobs with one flow each: erasure, KPIs, live operations."""

from gamelake.observability.lineage.flow import Flow, FlowEnd, RunKind, TopicDataset, tables
from gamelake.privacy.erasure_records import ErasureDone
from gamelake.serving.kpis import tables as kpi
from gamelake.serving.kpis.sources import HOURS, PLAYER_DAYS, SESSIONS
from gamelake.serving.live_ops.settings import LiveOpsSettings
from gamelake.serving.live_ops.signals.watch_tables import MINUTES, SIGNALS
from gamelake.serving.live_ops.states.player_table import PLAYER_STATE


def flow_of(done: ErasureDone) -> Flow | None:
    """Return the lineage of an erasure; None if it took no rows out of any table."""
    changed = [each.table for each in done.tables if each.rows]
    if not changed:
        return None
    return Flow(
        job="forget_player",
        description="Removes the rows of erased players from all tables.",
        kind=RunKind.BATCH,
        inputs=tables(*changed),
        outputs=tables(*changed),
    )


# The sources of each KPI table.
_KPI_SOURCES = {
    kpi.PLAYERS.name: (PLAYER_DAYS.path,),
    kpi.PLAYER_SETS.name: (PLAYER_DAYS.path, kpi.PLAYERS.path),
    kpi.DAILY.name: (HOURS.path, SESSIONS.path, kpi.PLAYER_SETS.path),
    kpi.ACTIVE_PLAYERS.name: (kpi.PLAYER_SETS.path,),
    kpi.COHORTS.name: (kpi.PLAYER_SETS.path,),
    kpi.COHORTS_BY.name: (PLAYER_DAYS.path, kpi.PLAYER_SETS.path),
}


def kpi_flows(kind: RunKind) -> list[Flow]:
    """Return the lineage of the KPI tables that follow from gold's tables."""
    return [
        Flow(
            job=f"kpis.{table.name}",
            description=f"Keeps {table.path} up to date; a row is {', '.join(table.keys)}.",
            kind=kind,
            inputs=tables(*_KPI_SOURCES[table.name]),
            outputs=tables(table.path),
        )
        for table in kpi.ALL
    ]


def flow(settings: LiveOpsSettings, query: str, kind: RunKind) -> Flow:
    """Return the lineage of the whole query; `query` is its id."""
    servers, reading = settings.reading.kafka.bootstrap_servers, settings.reading
    published = (FlowEnd(what=TopicDataset(servers, name)) for name in (settings.player_topic, settings.signal_topic))
    return Flow(
        job="live_ops",
        description="Keeps each player's state and the signals about games, for the systems that act on them.",
        kind=kind,
        query=query,
        inputs=(FlowEnd(what=TopicDataset(servers, reading.topic)),),
        outputs=(*published, *tables(PLAYER_STATE, MINUTES, SIGNALS)),
    )
