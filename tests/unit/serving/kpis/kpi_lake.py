"""A lakehouse whose gold tables and KPIs are kept up as gold's job does."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path

import msgspec
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from gamelake.contract.games import GamesContract, GameSpec
from gamelake.model.naming import SILVER_EVENTS
from gamelake.privacy.row_eraser import RowEraser
from gamelake.scans.player_rows import PlayerFilter, player_table, player_tables
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.refresh import Refreshed
from gamelake.serving.gold.runner import GoldTables, attempt
from gamelake.serving.kpis.refresh import KpiRefresh, KpisRefreshed
from tests.support.kpi_answers import Rows, expected_kpis, in_order
from tests.support.silver_events import Event, Silver

CONTRACT = load_gold(Path("contracts/games.yaml"))
_SOURCES = ("all_player_days", "all_sessions", "kpi_hourly", "kpi_late")
GOLD = msgspec.structs.replace(
    CONTRACT, aggregates=tuple(each for each in CONTRACT.aggregates if each.name in _SOURCES)
)


def with_zones(zones: Mapping[str, str]) -> GamesContract:
    """A contract whose titles have these zones."""
    games = [
        GameSpec(name=f"game_{number}", match=(title,), time_zone=zone)
        for number, (title, zone) in enumerate(sorted(zones.items()))
    ]
    return msgspec.structs.replace(GOLD, games=tuple(games)) if games else GOLD


_COUNTS = {"kpi_hourly": "events", "kpi_late": "arrived"}


@dataclass
class KpiLake:
    """Silver, gold's tables that KPIs are computed from, and the tables of KPIs."""

    silver: Silver
    today: date = date(2026, 7, 31)
    hour: int = 0
    zones: Mapping[str, str] = field(default_factory=dict)
    refresh: KpiRefresh = field(init=False)

    def __post_init__(self) -> None:
        """Begin as gold's job does."""
        self.begin_again()

    def begin_again(self) -> None:
        """As if gold's job was started again."""
        self.refresh = KpiRefresh(self.silver.store, with_zones(self.zones).zones, now=self.now)

    def now(self) -> datetime:
        """The time that the platform's clock shows."""
        return datetime.combine(self.today, time(self.hour), UTC)

    def refresh_gold(self) -> None:
        """Bring gold's tables up to date."""
        for table in GoldTables(self.silver.store, with_zones(self.zones)).now():
            done = attempt(table)
            assert isinstance(done, Refreshed), done.reason

    def run(self) -> KpisRefreshed:
        """Bring gold's tables, then the KPIs up to date."""
        self.refresh_gold()
        return self.refresh()

    def take(self, *commits: Sequence[Event]) -> None:
        """Append and refresh, commit by commit."""
        for events in commits:
            self.silver.append(events)
            self.run()

    def rows(self, table: str) -> Rows:
        """A table's rows, in order, without those of the platform's own tests alone."""
        found = DeltaTable(self.silver.folder / "gold" / table)
        names, number = [field.name for field in found.schema().fields], _COUNTS.get(table)
        rows = [row for row in found.to_pyarrow_table().to_pylist() if number is None or row[number]]
        return in_order([tuple(row[name] for name in names) for row in rows])

    def figures(self, table: str, *columns: str) -> list[tuple[object, ...]]:
        """Some columns of a table's rows, in order."""
        rows = DeltaTable(self.silver.folder / "gold" / table).to_pyarrow_table().to_pylist()
        return sorted((tuple(row[column] for column in columns) for row in rows), key=repr)

    def expected(self) -> dict[str, Rows]:
        return expected_kpis(self.silver.table(SILVER_EVENTS), self.now(), self.zones)

    def check(self) -> None:
        """Compare each table with silver."""
        for table, expected in self.expected().items():
            found = self.rows(table)
            assert found == expected, (table, set(found) ^ set(expected))

    def erase(self, gamer: str, tables: Collection[str] = ()) -> None:
        """Erase a player from some tables, or from all with rows of players, sources first, as the job does."""
        names = tables or sorted((each.name for each in player_tables(self.silver.store)), key=_is_gold)
        for name in names:
            with suppress(TableNotFoundError):
                found = player_table(self.silver.store, name)
                assert found is not None
                RowEraser(self.silver.store, found, PlayerFilter(frozenset({gamer})), "run").erase()


def _is_gold(table: str) -> bool:
    return table.startswith("gold/")
