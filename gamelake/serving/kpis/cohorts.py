"""The cohorts of a game: what the players of each first day did on each day since.

A cell is one day of one cohort. Its own counts depend on the sets of its day and on the players of the cohort; its
cumulative columns are sums over the cohort's cells. So a change computes the cells of changed days and of changed
cohorts from the sets, takes the other cells from the table, and sums all of them from the first changed day on.

The files of a game are sorted by the day, not by the cohort: a change of today changes a cell of each cohort, which are
neighbours in one file.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from gamelake.contract.time_zones import TimeZone
from gamelake.scans.sql_engine import Engine
from gamelake.serving.kpis.days import CALENDAR, calendar
from gamelake.serving.kpis.game_files import GameFiles
from gamelake.serving.kpis.sets import DaySets, GameSets, as_numbers
from gamelake.serving.kpis.sources import may_have
from gamelake.serving.kpis.table_files import FileChange, TableFilesOf
from gamelake.serving.kpis.tables import COHORTS, LAST_COHORT_DAY, MONEY

# The rows of 45 days with 365 cohorts: a refresh rewrites the newest file of each game.
_ROWS_PER_FILE = 16_384
_EPOCH = date(1970, 1, 1)
_CELL = ("event_date", "cohort_date", "new_players", "returned_players", "bookings", "new_payers")
_CELLS = pa.schema([COHORTS.schema.field(name) for name in _CELL])
COHORT_ROWS = f"""
    WITH summed AS (
      SELECT cells.*, coalesce(earlier.cumulative_bookings, 0) + sum(cells.bookings) OVER since AS cumulative_bookings,
        coalesce(earlier.payers, 0) + sum(cells.new_payers) OVER since AS payers
      FROM cells LEFT JOIN earlier USING (cohort_date)
      WINDOW since AS (PARTITION BY cohort_date ORDER BY cells.event_date))
    SELECT summed.*, event_date - cohort_date AS day, returned_players / new_players AS returned_retention,
      CAST(cumulative_bookings AS DOUBLE) / new_players AS ltv, payers / new_players AS conversion, provisional_until
    FROM summed JOIN {CALENDAR} USING (event_date)"""  # noqa: S608 # constants


@dataclass(frozen=True, slots=True)
class Cohorts:
    """Computes the rows of one game's cohorts that a refresh changes.

    Attributes:
        sets: the game's sets of players.
        table: the table of cohorts, opened.
        sql: the engine that computes the rows.
        zone: the zone of the game's days.
        today: the game's day at the time of the platform's clock; later days have no cells.
        progress: is called after each day.
    """

    sets: GameSets
    table: TableFilesOf
    sql: Engine
    zone: TimeZone
    today: date
    progress: Callable[[], None]

    def change(self, begun: set[date]) -> FileChange:
        """Compute all rows from the first changed day on, and write the files whose rows change.

        Args:
            begun: the days that have no rows yet.
        """
        days = {day for day in self.sets.changed | begun if day <= self.today}
        cohorts = {day for day in self.sets.cohorts if day <= self.today}
        if not days | cohorts:
            return FileChange()
        first = min(days | cohorts)
        number = (first - _EPOCH).days
        files = GameFiles(self.table, self.sets.game, _ROWS_PER_FILE)
        day_before = date.fromordinal(max(first.toordinal() - 1, 1))
        former = files.rows_since(day_before).filter(pc.field("event_date") >= day_before)
        since = former.filter(pc.field("event_date") >= first)
        is_new = pc.field("event_date").isin(list(days)) | pc.field("cohort_date").isin(list(cohorts))
        cells = pa.concat_tables([since.filter(~is_new).select(_CELL), *self._cells(days, cohorts)])
        self.sql.give("cells", cells)
        self.sql.give(CALENDAR, calendar(self.zone, cells.column("event_date").unique().to_pylist()))
        self.sql.give("earlier", former.filter(pc.field("event_date") < first))
        rows = self.sql.table(COHORT_ROWS).select(files.schema.names).cast(files.schema)
        return files.replace(since, rows, lambda old: old.column("event_date").cast(pa.int32()).to_numpy() < number)

    def _cells(self, days: set[date], cohorts: set[date]) -> Iterable[pa.Table]:
        """Compute the cells of some days and of some cohorts from the sets."""
        new = self.sets.new_players()
        of_cohorts = {each for cohort in cohorts & new.keys() for each in days_of(cohort, self.today)}
        for day in sorted(days | of_cohorts):
            within = {
                cohort: players
                for cohort, players in new.items()
                if 0 <= (day - cohort).days <= LAST_COHORT_DAY and (day in days or cohort in cohorts)
            }
            if within:
                yield self._of_day(day, within)
                self.progress()

    def _of_day(self, day: date, cohorts: Mapping[date, BitMap]) -> pa.Table:
        sets, players = self.sets.of(day), list(cohorts.values())
        columns = {
            "event_date": pa.repeat(pa.scalar(day), len(cohorts)),
            "cohort_date": pa.array(cohorts, pa.date32()),
            "new_players": [len(each) for each in players],
            "returned_players": [each.intersection_cardinality(sets.active) for each in players],
            "bookings": _bookings(sets, players),
            "new_payers": [each.intersection_cardinality(sets.new_payers) for each in players],
        }
        return pa.table(columns, _CELLS)


def rows_of_day(table: TableFilesOf, day: date) -> pa.Table:
    """Read the rows of all games of one day from the table of cohorts: all its columns, unordered."""
    found = [COHORTS.schema.empty_table()]
    for run in table.runs():
        if may_have(run, (day,)):
            rows = table.recent_rows_of(run.file).filter(pc.field("event_date") == day)
            games = pa.repeat(pa.scalar(run.file.partition["game_name"], pa.string()), len(rows))
            found.append(rows.append_column("game_name", games).select(COHORTS.schema.names).cast(COHORTS.schema))
    return pa.concat_tables(found)


def days_of(cohort: date, today: date, after: date = date.min) -> list[date]:
    """Return the days of a cohort that have begun, in ascending order; only those later than `after`."""
    first = cohort.toordinal()
    begun = range(max(first, after.toordinal() + 1), min(first + LAST_COHORT_DAY, today.toordinal()) + 1)
    return [date.fromordinal(n) for n in begun]


def _bookings(sets: DaySets, cohorts: Sequence[BitMap]) -> pa.Array:
    """Return the bookings of a day by cohort."""
    payers = as_numbers(sets.payers)
    cohort_of = np.full(len(payers), len(cohorts))
    for place, players in enumerate(cohorts):
        cohort_of[np.searchsorted(payers, as_numbers(players & sets.payers))] = place
    paid = pa.table({"cohort": cohort_of, "paid": sets.played.bookings})
    sums = paid.group_by("cohort").aggregate([("paid", "sum")])
    found = dict(zip(sums.column("cohort").to_pylist(), sums.column("paid_sum").to_pylist(), strict=True))
    return pa.array([found.get(place, Decimal(0)) for place in range(len(cohorts))], MONEY)
