"""The lineage of jobs with one flow each: erasure, KPIs, live operations."""

import sqlglot
from sqlglot import exp

from gamelake.model.naming import SILVER_EVENTS
from gamelake.observability.lineage.flow import Flow, FlowEnd, RunKind, TopicDataset, tables
from gamelake.privacy.erasure_records import ErasureDone
from gamelake.serving.kpis.definitions import ALL, PLAYERS, KpiTable
from gamelake.serving.live_ops.player_table import PLAYER_STATE
from gamelake.serving.live_ops.settings import LiveOpsSettings
from gamelake.serving.live_ops.watch_tables import MINUTES, SIGNALS


def flow_of(done: ErasureDone) -> Flow | None:
    """The lineage of an erasure; None if it took no rows out of any table."""
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


# What the stream counts of silver's events, by the names that the tables' SQL has for it.
_OF_SILVER = frozenset({"hours", "visits", "arrivals", "seen"})
# What it keeps of a table, by the name that the tables' SQL has for it.
_KEPT_OF = {"player_depths": PLAYERS.name}
_PATHS = {table.name: table.path for table in ALL}


def flows(query: str, kind: RunKind) -> list[Flow]:
    """The lineage of all KPI tables; `query` is the name under which they know its commits."""
    return [_flow(table, query, kind) for table in ALL]


def _flow(table: KpiTable, query: str, kind: RunKind) -> Flow:
    tree = sqlglot.parse_one(table.sql, dialect="duckdb")
    read = {_KEPT_OF.get(each.name, each.name) for each in tree.find_all(exp.Table)}
    sources = sorted(path for name, path in _PATHS.items() if name in read and name != table.name)
    return Flow(
        job=f"kpis.{table.name}",
        description=f"Keeps {table.path} up to date; a row is {', '.join(table.grain)}.",
        kind=kind,
        query=query,
        sql=tree.sql("duckdb", pretty=True),
        inputs=tables(*([SILVER_EVENTS] if read & _OF_SILVER else []), *sources),
        outputs=tables(table.path),
    )


def flow(settings: LiveOpsSettings, query: str, kind: RunKind) -> Flow:
    """The lineage of the whole query; `query` is its id."""
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
