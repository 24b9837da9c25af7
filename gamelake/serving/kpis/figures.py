"""The KPIs of one game: computes the rows of its changed days in each KPI table from gold's tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from gamelake.contract.time_zones import TimeZone
from gamelake.delta.declared_table import DeclaredTable
from gamelake.scans.sql_engine import Engine
from gamelake.serving.kpis.cohorts import COHORT_ROWS, Cohorts
from gamelake.serving.kpis.cohorts_by import SPLIT_ROWS, CohortsBy
from gamelake.serving.kpis.days import CALENDAR, calendar
from gamelake.serving.kpis.first_values import SQL as FIRST_VALUES
from gamelake.serving.kpis.first_values import FirstValues
from gamelake.serving.kpis.numbers import PLAYER_KEY, KnownPlayers, NewPlayers, Numbers
from gamelake.serving.kpis.sets import GameSets, Played, activity, after, as_set
from gamelake.serving.kpis.sources import (
    HOURS,
    PLAYER_DAYS,
    SESSIONS,
    GoldSources,
    SourceChanges,
    changed_sql,
    portions,
)
from gamelake.serving.kpis.table_files import FileChange, TableFilesOf
from gamelake.serving.kpis.tables import ACTIVE_PLAYERS, COHORTS, COHORTS_BY, DAILY, MONTH

_EPOCH = date(1970, 1, 1)
_ASKED = "SEMI JOIN asked USING (event_date, game_name)"
_PLAYED = f"""
    SELECT event_date, purchase_count > 0 AS paid, CAST(coalesce(bookings, 0) AS DECIMAL(38, 6)) AS bookings,
      {PLAYER_KEY} AS key
    FROM all_player_days {_ASKED} WHERE {PLAYER_DAYS.rows}"""  # noqa: S608 # constants
# Numbered in order of first appearance: players of the same days get neighbouring numbers, and such sets are small.
_UNKNOWN = f"""
    SELECT gamer_id, {PLAYER_KEY} AS key, min(event_date) AS first
    FROM all_player_days {_ASKED} WHERE {PLAYER_DAYS.rows} AND {PLAYER_KEY} IN (SELECT key FROM unknown)
    GROUP BY game_name, gamer_id ORDER BY first, gamer_id"""  # noqa: S608 # constants
# As the view gold.concurrent_players: of the minutes of a player's sessions, which may overlap, each counts once.
_PEAKS = f"""
    minutes AS (
      SELECT event_date, game_name, gamer_id, date_trunc('minute', began) AS first_minute,
        date_trunc('minute', ended) + INTERVAL 1 MINUTE AS next_minute
      FROM all_sessions {_ASKED} WHERE {SESSIONS.rows}),
    apart AS (
      SELECT event_date, game_name, next_minute, greatest(first_minute, max(next_minute) OVER (
        PARTITION BY event_date, game_name, gamer_id ORDER BY first_minute, next_minute
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS first_minute
      FROM minutes),
    steps AS (
      SELECT event_date, game_name, first_minute AS minute, 1 AS step FROM apart WHERE first_minute < next_minute
      UNION ALL SELECT event_date, game_name, next_minute, -1 FROM apart WHERE first_minute < next_minute),
    changes AS (SELECT event_date, game_name, minute, sum(step) AS change FROM steps GROUP BY ALL),
    levels AS (
      SELECT event_date, game_name, sum(change) OVER (PARTITION BY event_date, game_name ORDER BY minute) AS players
      FROM changes),
    peaks AS (SELECT event_date, game_name, max(players) AS peak FROM levels GROUP BY ALL)"""  # noqa: S608 # constants
_DAILY = f"""
    WITH happened AS (
      SELECT event_date, game_name, sum(events) AS events, sum(purchases) AS purchases,
        coalesce(sum(bookings), 0) AS bookings
      FROM kpi_hourly {_ASKED} WHERE {HOURS.rows} GROUP BY ALL),
    played AS (
      SELECT event_date, game_name, count(*) AS sessions,
        quantile_cont(epoch(ended - began), [0.5, 0.9, 0.99]) AS seconds
      FROM all_sessions {_ASKED} WHERE {SESSIONS.rows} GROUP BY ALL),
    {_PEAKS}
    SELECT event_date, game_name, events, purchases, bookings, active_players, payers,
      payers / nullif(active_players, 0) AS conversion,
      CAST(bookings AS DOUBLE) / nullif(active_players, 0) AS arpdau,
      CAST(bookings AS DOUBLE) / nullif(payers, 0) AS arppu,
      coalesce(sessions, 0) AS sessions, coalesce(peak, 0) AS peak_concurrent_players,
      seconds[1] AS session_seconds_p50, seconds[2] AS session_seconds_p90, seconds[3] AS session_seconds_p99,
      begins, ends, time_zone, provisional_until
    FROM happened JOIN asked USING (event_date, game_name) LEFT JOIN played USING (event_date, game_name)
      JOIN {CALENDAR} USING (event_date)
      LEFT JOIN peaks USING (event_date, game_name)
    """  # noqa: S608 # constants
_ACTIVITY = f"SELECT activity.*, provisional_until FROM activity JOIN {CALENDAR} USING (event_date)"  # noqa: S608 # constants
SQL = (
    *map(changed_sql, (PLAYER_DAYS, SESSIONS, HOURS)),
    _PLAYED,
    _UNKNOWN,
    _DAILY,
    _ACTIVITY,
    COHORT_ROWS,
    *FIRST_VALUES,
    *SPLIT_ROWS,
)


@dataclass(frozen=True, slots=True)
class TableChange:
    """New rows of one game in one KPI table.

    Attributes:
        table: the KPI table.
        game: the game's title.
        days: the days whose former rows the new ones replace.
        rows: all columns of the table, one row per day that has players.
    """

    table: DeclaredTable
    game: str
    days: set[date]
    rows: pa.Table

    @property
    def touched(self) -> pa.Table:
        """The key columns of the rows to replace: the day (date32, ascending) and the game (string)."""
        days = pa.array(sorted(self.days), pa.date32())
        return pa.table(
            {self.table.keys[0]: days, "game_name": pa.repeat(pa.scalar(self.game, pa.string()), len(days))}
        )


@dataclass(frozen=True, slots=True)
class GameChange:
    """The changes of one game's KPIs in a refresh, except those of its sets.

    Attributes:
        rows: one change for each of the tables DAILY and ACTIVE_PLAYERS.
        cohorts: the files of COHORTS and COHORTS_BY, by table.
    """

    rows: Sequence[TableChange]
    cohorts: Mapping[str, FileChange]


@dataclass(frozen=True, slots=True)
class GameKpis:
    """Computes the KPI rows that the changed days of a game affect.

    Attributes:
        game: the game's title.
        zone: the zone of the game's days.
        sets: the game's sets of players: the committed ones, and those that this computes.
        tables: the KPI tables, by name.
        sources: the gold tables that KPIs are computed from.
        changes: the changes of these tables, by path.
        known: the index of players who have numbers.
        new_players: receives the players that this numbers.
        sql: the engine that computes the rows.
        progress: is called after each part of the days, since all days of a large game take minutes.
    """

    game: str
    zone: TimeZone
    sets: GameSets
    tables: Mapping[str, TableFilesOf]
    sources: GoldSources
    changes: Mapping[str, SourceChanges]
    known: KnownPlayers
    new_players: NewPlayers
    sql: Engine
    progress: Callable[[], None]

    def compute(self, days: Sequence[date], begun: set[date], today: date) -> GameChange:
        """Compute the rows of the changed days and of all days that depend on them, and write the sets' new files.

        Args:
            days: the days that changed, in ascending order.
            begun: days of cohorts that have begun since the last refresh.
            today: the game's day at the time of the platform's clock.

        Returns:
            The new rows, and the new files of COHORTS and COHORTS_BY.

        Raises:
            FileNotFoundError: a file of gold is deleted already.
        """
        files = {
            source.path: self.changes[source.path].files_of(self.game, days)
            for source in (PLAYER_DAYS, SESSIONS, HOURS)
        }
        every_file = {day: [file for of_source in files.values() for file in of_source[day]] for day in days}
        values = FirstValues(self.game, self.sources, self.changes[PLAYER_DAYS.path], self.known, self.sql)
        self.sets.split_of = values.split
        daily = [DAILY.schema.empty_table()]
        for part in portions(days, every_file):
            for source in (PLAYER_DAYS, SESSIONS, HOURS):
                found = {file.path: file for day in part for file in files[source.path][day]}
                self.sources.give(self.sql, source.name, self.changes[source.path], list(found.values()))
            self._give_asked(dict.fromkeys(part, (0, 0)))
            self.sets.take(self._players(part, values))
            self._give_asked({day: (len(self.sets.of(day).active), len(self.sets.of(day).payers)) for day in part})
            self.sql.give(CALENDAR, calendar(self.zone, part))
            daily.append(self._rows(DAILY, _DAILY))
            self.progress()
        cohorts = {
            table.name: kind(self.sets, self.tables[table.name], self.sql, self.zone, today, self.progress).change(
                begun
            )
            for table, kind in ((COHORTS, Cohorts), (COHORTS_BY, CohortsBy))
        }
        of_days = TableChange(DAILY, self.game, set(days), pa.concat_tables(daily))
        return GameChange([of_days, self._activity()], cohorts)

    def _players(self, days: Sequence[date], values: FirstValues) -> dict[date, Played]:
        """Return the players of some days, as sets of numbers; number the players who have none yet."""
        played = self.sql.table(_PLAYED)
        keys = played.column("key").to_numpy()
        numbers, known = self.known.find(keys)
        if not known.all():
            self._number(np.unique(keys[~known]))
            numbers, _ = self.known.find(keys)
        of_day = played.column("event_date").cast(pa.int32()).to_numpy()
        paid, bookings = played.column("paid").to_numpy(), played.column("bookings")
        found, players = {}, {}
        for day in days:
            here = of_day == (day - _EPOCH).days
            players[day] = keys[here], numbers[here]
            payers = numbers[here & paid]
            # Two players whose keys are equal have one number, which almost never happens.
            of_payers = pa.table({"number": payers, "paid": bookings.filter(pa.array(here & paid))})
            sums = of_payers.group_by("number").aggregate([("paid", "sum")]).sort_by("number").column("paid_sum")
            found[day] = Played(as_set(numbers[here]), as_set(payers), sums.combine_chunks())
        values.keep(players)
        return found

    def _number(self, keys: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        self.sql.give("unknown", pa.table({"key": keys}))
        unknown = self.sql.table(_UNKNOWN)
        numbers: Numbers = self.known.number(self.game, unknown.column("key").to_numpy())
        self.new_players.add(self.game, unknown.column("gamer_id"), numbers)

    def _activity(self) -> TableChange:
        """Compute the activity of all days whose windows have the changed days."""
        days = {each for day in self.sets.moved for each in after(day, range(MONTH))}
        self.sql.give(CALENDAR, calendar(self.zone, days & self.sets.days))
        self.sql.give("activity", _of_dicts(activity(self.sets, sorted(days & self.sets.days)), ACTIVE_PLAYERS))
        return TableChange(ACTIVE_PLAYERS, self.game, days, self._rows(ACTIVE_PLAYERS, _ACTIVITY))

    def _rows(self, table: DeclaredTable, sql: str) -> pa.Table:
        return self.sql.table(sql).select(table.schema.names).cast(table.schema)

    def _give_asked(self, counts: Mapping[date, tuple[int, int]]) -> None:
        columns: dict[str, object] = {
            "event_date": pa.array(counts, pa.date32()),
            "game_name": pa.repeat(pa.scalar(self.game, pa.string()), len(counts)),
            "active_players": pa.array([players for players, _ in counts.values()], pa.int64()),
            "payers": pa.array([payers for _, payers in counts.values()], pa.int64()),
        }
        self.sql.give("asked", pa.table(columns))


def _of_dicts(rows: Sequence[Mapping[str, object]], table: DeclaredTable) -> pa.Table:
    names = [name for name in table.schema.names if name != "provisional_until"]
    return pa.Table.from_pylist(list(rows), schema=pa.schema([table.schema.field(name) for name in names]))
