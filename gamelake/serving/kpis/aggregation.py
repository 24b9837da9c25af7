"""Aggregates a batch into the KPI tables: which days it touches, what is computed again, what is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gamelake.serving.kpis import definitions as kpi
from gamelake.serving.kpis.day_tables import DayTable
from gamelake.serving.kpis.definitions import ExactUpTo, KpiTable
from gamelake.serving.kpis.known_players import PLAYER_KEY, KnownPlayers
from gamelake.storage.sql_engine import Engine, engine

_BROUGHT = {
    "hours": f"""
        SELECT CAST(hour AS DATE) AS event_date, hour, game_name, a AS platform, b AS app_version,
          events, purchases, bookings
        FROM facts WHERE facet = '{kpi.HOUR}'""",  # noqa: S608 # a constant
    "visits": f"""
        SELECT CAST(hour AS DATE) AS event_date, game_name, a AS gamer_id, b AS session_id,
          min(first_event) AS first_event, max(last_event) AS last_event, bool_or(purchases > 0) AS paid
        FROM facts WHERE facet = '{kpi.SESSION}' GROUP BY ALL""",  # noqa: S608 # a constant
    "arrivals": f"""
        SELECT CAST(hour AS DATE) AS event_date, hour, game_name, events
        FROM facts WHERE facet = '{kpi.ARRIVAL}'""",  # noqa: S608 # a constant
}
# The players that the batch brings.
_SEEN = f"""
    SELECT game_name, gamer_id, min(event_date) AS event_date, {PLAYER_KEY} AS key
    FROM visits WHERE gamer_id IS NOT NULL GROUP BY ALL"""  # noqa: S608 # a constant
# The days that players come to, and those that they come from.
_MOVED = """
    SELECT unnest([event_date, first_date]) FROM seen WHERE first_date IS NULL OR event_date < first_date"""
_HALVED = """
    SELECT game_name FROM player_depths JOIN known_depths USING (game_name)
    WHERE player_depths.halvings > known_depths.halvings"""


@dataclass(frozen=True, slots=True)
class KpiUpdate:
    """The rows that a batch has written, by table, and how many more events are late than before it, by game."""

    rows: Mapping[str, pa.Table]
    late: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KpiAggregation:
    """One batch on its way into the tables, which are open."""

    tables: Mapping[str, DayTable]
    exact: ExactUpTo
    known: KnownPlayers
    sql: Engine

    def run(self, facts: pa.Table, batch: int) -> KpiUpdate:
        """Merge the facts into the tables and compute the tables that derive from them.

        Args:
            facts: the batch's facts; columns as in `aggregate`.
            batch: its id, for the commits.

        Raises:
            CommitConflictError: another writer has committed to a table in between.
        """
        self._bring(facts)
        touched = self._give_old()
        before = self._late()
        made = {table.name: self._make(table, touched) for table in kpi.ALL}
        for table in (*kpi.ALL[1:], kpi.ALL[0]):
            self.tables[table.name].replace(touched[table.name], made[table.name], batch)
        return KpiUpdate(made, {game: late - before.get(game, 0) for game, late in self._late().items()})

    def _bring(self, facts: pa.Table) -> None:
        self.sql.give("facts", facts)
        for name, sql in _BROUGHT.items():
            self.sql.give(name, self.sql.table(sql))
        self._give_days("exact", {"players": [self.exact.players], "sessions": [self.exact.sessions]})

    def _give_old(self) -> dict[str, set[date]]:
        """Name the rows that the batch touches or needs; gives the days to be written, by table."""
        changed = self._days("SELECT event_date FROM hours UNION SELECT event_date FROM visits")
        arrived = changed | self._days("SELECT event_date FROM arrivals")
        moved = self._give_seen()
        known = self.tables[kpi.PLAYER_DAYS.name].days() | changed
        windows = _after(changed, range(kpi.MONTH)) & known
        cohorts = _before(changed, (0, *kpi.RETENTION_DAYS)) | moved
        # A sample that is halved is another one on every day.
        resampled = self.tables[kpi.PLAYERS.name].days() if len(self.sql.table(_HALVED)) else set[date]()
        self.sql.give(kpi.PLAYERS.name, self.tables[kpi.PLAYERS.name].rows(cohorts | resampled))
        needed = _before(windows, range(kpi.MONTH)) | _after(cohorts, kpi.RETENTION_DAYS)
        past = self.tables[kpi.PLAYER_DAYS.name].rows((needed & known) - changed)
        self.sql.give("past_player_days", past)
        for name, days in (("changed", changed), ("windows", windows), ("newest", {max(known, default=None)} - {None})):
            self._give_days(name, {"event_date": sorted(days)})
        self._give_days("cohorts", {"cohort_date": sorted(cohorts)})
        touched = dict.fromkeys((table.name for table in kpi.ALL), changed)
        touched |= {kpi.LATE.name: arrived, kpi.PLAYERS.name: moved | resampled}
        touched |= {kpi.ACTIVE_PLAYERS.name: windows, kpi.RETENTION.name: cohorts}
        for table in (kpi.HOURLY, kpi.LATE):
            self.sql.give(table.name, self.tables[table.name].rows(arrived))
        for table in (kpi.PLAYER_DAYS, kpi.SESSIONS):
            self.sql.give(table.name, self.tables[table.name].rows(changed))
        return touched

    def _give_seen(self) -> set[date]:
        """Name the players of the batch and the depths of samples; gives the days that players come to or from."""
        self.known.refresh(self.tables[kpi.PLAYERS.name], self.sql)
        seen = self.sql.table(_SEEN)
        self.sql.give("seen", seen.append_column("first_date", self.known.first_days(seen.column("key").to_numpy())))
        self.sql.give("known_depths", self.known.depths())
        self.sql.give("player_depths", self.sql.table(kpi.PLAYER_DEPTHS))
        return self._days(_MOVED)

    def _make(self, table: KpiTable, touched: dict[str, set[date]]) -> pa.Table:
        """The rows of the days that are written, and the table's own name for all that was made."""
        rows = self.sql.table(table.sql).select(table.schema.names).cast(table.schema)
        self.sql.give(table.name, rows)
        return rows.filter(_is_of(rows, table.day, touched[table.name]))

    def _late(self) -> dict[str, int]:
        late = self.sql.table("SELECT game_name, sum(late) AS late FROM kpi_late GROUP BY ALL")
        return {row["game_name"]: row["late"] for row in late.to_pylist()}

    def _days(self, sql: str) -> set[date]:
        return set(self.sql.table(sql).column(0).to_pylist()) - {None}

    def _give_days(self, name: str, columns: dict[str, Sequence[Any]]) -> None:
        arrays = {
            column: pa.array(values, pa.int64() if name == "exact" else pa.date32())
            for column, values in columns.items()
        }
        self.sql.give(name, pa.table(arrays))


def aggregate(
    tables: Mapping[str, DayTable], exact: ExactUpTo, facts: pa.Table, batch: int, known: KnownPlayers | None = None
) -> KpiUpdate:
    """Add a batch to the KPI tables.

    Args:
        tables: by name; they are opened at their newest versions.
        exact: the days that rows are exact up to.
        facts: the batch's aggregated events, with the columns of `gamelake.serving.kpis.query.facts`.
        batch: its id, for the commits.
        known: the players that an earlier batch knew of these tables; without it all of them are read.

    Raises:
        CommitConflictError: another writer has committed to a table in between; nothing is lost if it is done again.
    """
    for table in tables.values():
        table.open()
    with engine(threads=2) as sql:
        return KpiAggregation(tables, exact, known or KnownPlayers(), sql).run(facts, batch)


def _after(days: set[date], distances: Sequence[int]) -> set[date]:
    return {day + timedelta(days=n) for day in days for n in distances}


def _before(days: set[date], distances: Sequence[int]) -> set[date]:
    return {day - timedelta(days=n) for day in days for n in distances}


def _is_of(rows: pa.Table, column: str, days: set[date]) -> pa.ChunkedArray:
    return pc.is_in(rows.column(column), value_set=pa.array(sorted(days), pa.date32()))
