"""What the KPI query tells of its lineage: each of its tables is made by SQL of silver's events and of other tables."""

import sqlglot
from sqlglot import exp

from gamelake.kpis.definitions import ALL, KpiTable
from gamelake.lineage.flow import Flow, Kind, tables
from gamelake.naming import SILVER_EVENTS

# What the stream counts of silver's events, by the names that the tables' SQL has for it.
_OF_SILVER = frozenset({"hours", "visits", "arrivals"})
_PATHS = {table.name: table.path for table in ALL}


def flows(query: str, kind: Kind) -> list[Flow]:
    """The lineage of all KPI tables; `query` is the name under which they know its commits."""
    return [_flow(table, query, kind) for table in ALL]


def _flow(table: KpiTable, query: str, kind: Kind) -> Flow:
    tree = sqlglot.parse_one(table.sql, dialect="duckdb")
    read = {each.name for each in tree.find_all(exp.Table)}
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
