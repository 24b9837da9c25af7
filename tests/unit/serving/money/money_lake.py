"""Gold's money tables of some events, merged from parts as a refresh merges them, and the views over them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from gamelake.delta.listing import table_names
from gamelake.objects.store import Location, Store
from gamelake.scans.sql_engine import engine
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.definition import define
from gamelake.serving.money.rates import import_rates
from gamelake.serving.sql.duckdb import answer
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import load_views
from tests.answers.lakehouse import SILVER_SCHEMA, row_of
from tests.answers.play import Event

CONTRACT = load_gold(Path("contracts/games.yaml"))
VIEWS = load_views(Path("sql/views"), Path("contracts/games.yaml"))
TABLES = ("money_daily", "all_orders", "all_subscription_periods")
Row = dict[str, Any]


def merged(name: str, parts: Sequence[Sequence[Event]]) -> pa.Table:
    """The rows of an aggregate: each part is aggregated alone and merged into the rows of the parts before."""
    [spec] = (each for each in CONTRACT.aggregates if each.name == name)
    definition = define(spec)
    with engine(1) as sql:
        rows = None
        for part in parts:
            sql.give("silver", pa.Table.from_pylist([row_of(event) for event in part], SILVER_SCHEMA))
            fresh = sql.table(definition.over("silver"))
            if rows is not None:
                sql.give("old", rows)
                sql.give("fresh", fresh)
                fresh = sql.table(definition.merging("(SELECT * FROM old UNION ALL BY NAME SELECT * FROM fresh)"))
            rows = fresh
    assert rows is not None
    return rows.sort_by([(key, "ascending") for key in definition.keys])


@dataclass(frozen=True)
class MoneyLake:
    """A lakehouse with gold's money tables."""

    folder: Path
    parts: Sequence[Sequence[Event]]

    def __post_init__(self) -> None:
        """Write the tables, with a rate for euros."""
        for name in TABLES:
            write_deltalake(self.folder / "gold" / name, merged(name, self.parts))
        days = {(event.day, event.game_name) for part in self.parts for event in part}
        columns = {
            "event_date": pa.array([day for day, _ in days], pa.date32()),
            "game_name": [game for _, game in days],
        }
        write_deltalake(self.folder / "gold/kpi_daily", pa.table(columns))
        import_rates(Store(self.location), {("EUR", date(2026, 1, 1)): 1.25, ("USD", date(2026, 1, 1)): 1.0})

    @property
    def location(self) -> Location:
        return Location(uri=self.folder.as_uri())

    def ask(self, sql: str) -> list[Row]:
        relations = Relations(table_names(Store(self.location)), VIEWS, CONTRACT.games)
        rows: list[Row] = answer(sql, relations.read_by(sql), self.location).to_pylist()
        return rows
