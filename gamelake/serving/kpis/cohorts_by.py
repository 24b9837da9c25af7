"""The cohorts of a game, split by one dimension at a time.

A cell is one shown day of one value of a dimension in one cohort. After day 30 only a few days are shown, so the
cumulative columns add up all days since the previous shown day. A change computes all cells of changed cohorts, and the
cells of other cohorts from the first changed day on, starting from the cumulative columns of a row that stays.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from gamelake.contract.time_zones import TimeZone
from gamelake.model.arrays import Days, Flags
from gamelake.scans.sql_engine import Engine
from gamelake.serving.kpis.days import CALENDAR, calendar
from gamelake.serving.kpis.game_files import GameFiles
from gamelake.serving.kpis.numbers import Numbers
from gamelake.serving.kpis.sets import DaySets, GameSets, Newcomers, as_numbers
from gamelake.serving.kpis.table_files import FileChange, TableFilesOf
from gamelake.serving.kpis.tables import DIMENSIONS, MONEY, SPLIT_DAYS

# The rows of about 10 days: a refresh rewrites the newest file of each game.
_ROWS_PER_FILE = 16_384
# With more rows than this, the sums of several days are added up to save memory.
_SUMMED_ROWS = 200_000
_FIRST_ORDINAL = date(1970, 1, 1).toordinal()
_PAID = pa.schema(
    [
        ("cut", pa.int32()),
        ("event_date", pa.date32()),
        ("is_of_day", pa.bool_()),
        ("paid", MONEY),
        ("new_payers", pa.int64()),
    ]
)
_RETURNED = pa.schema([("cut", pa.int32()), ("event_date", pa.date32()), ("returned_players", pa.int64())])
_SUMMED = """
    SELECT cut, event_date, is_of_day, CAST(sum(paid) AS DECIMAL(38, 6)) AS paid, sum(new_payers) AS new_payers
    FROM paid GROUP BY ALL"""
_CELLS = f"""
    WITH base AS (
      SELECT cohort_date, dimension, value,
        cumulative_bookings - CASE WHEN is_own THEN bookings ELSE 0 END AS bookings_before,
        payers - CASE WHEN is_own THEN new_payers ELSE 0 END AS payers_before
      FROM former JOIN starts USING (cohort_date) WHERE event_date = base_date),
    sums AS (
      SELECT cut, event_date, sum(paid) AS since, sum(new_payers) AS payers_since,
        sum(paid) FILTER (is_of_day) AS bookings, sum(new_payers) FILTER (is_of_day) AS new_payers
      FROM paid GROUP BY ALL),
    summed AS (
      SELECT cohort_date, dimension, value, event_date, new_players, coalesce(returned_players, 0) AS returned_players,
        coalesce(bookings, 0) AS bookings, coalesce(new_payers, 0) AS new_payers,
        coalesce(bookings_before, 0) + coalesce(sum(since) OVER until_then, 0) AS cumulative_bookings,
        coalesce(payers_before, 0) + coalesce(sum(payers_since) OVER until_then, 0) AS payers
      FROM cuts JOIN shown USING (cohort_date) LEFT JOIN base USING (cohort_date, dimension, value)
        LEFT JOIN sums USING (cut, event_date) LEFT JOIN returned USING (cut, event_date)
      WINDOW until_then AS (PARTITION BY cut ORDER BY event_date))
    SELECT summed.*, event_date - cohort_date AS day, returned_players / new_players AS returned_retention,
      CAST(cumulative_bookings AS DOUBLE) / new_players AS ltv, payers / new_players AS conversion, provisional_until
    FROM summed JOIN {CALENDAR} USING (event_date)"""  # noqa: S608 # constants
SPLIT_ROWS = (_SUMMED, _CELLS, repr(SPLIT_DAYS))


@dataclass(frozen=True, slots=True)
class _Cohort:
    """A cohort with cells to compute.

    Attributes:
        day: the cohort's first day.
        shown: the days of the cells, in ascending order.
        base: the day of the former row whose cumulative columns are the start; None if there is none.
        start: the first day to add to them.
        cuts: the players by dimension and value.
        first_cut: the number of the first cut; the others follow in order.
        buyers: the numbers of the cohort's players who have ever bought something, ascending.
        cuts_of_buyers: int32 of shape (4, n): the number of each buyer's cut in each dimension.
    """

    day: date
    shown: Sequence[date]
    base: date | None
    start: date
    cuts: Sequence[BitMap]
    first_cut: int
    buyers: Numbers
    cuts_of_buyers: Days

    @property
    def is_own(self) -> bool:
        """True if the base is the former row of the first cell itself."""
        return self.base == self.start

    def next_shown(self, day: date) -> date:
        """Return the day of the cell that a day's bookings are added to."""
        return self.shown[bisect_left(self.shown, day)]


@dataclass(frozen=True, slots=True)
class CohortsBy:
    """Computes the rows of one game's split cohorts that a refresh changes.

    Attributes:
        sets: the game's sets of players.
        table: the table of split cohorts, opened.
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
        """Compute the rows of changed cells, and write the files whose rows change.

        Args:
            begun: the days that have no rows yet.
        """
        newcomers = self.sets.newcomers()
        firsts = self._firsts(begun, newcomers)
        if not firsts:
            return FileChange()
        files = GameFiles(self.table, self.sets.game, _ROWS_PER_FILE)
        cohorts = self._cohorts(firsts, newcomers, files)
        former = files.rows_of({each.base for each in cohorts if each.base is not None})
        rows = self._computed(cohorts, former, newcomers).select(files.schema.names).cast(files.schema)

        def stays(old: pa.Table) -> Flags:
            return _before(old, firsts)

        old = files.rows_since(min(firsts.values()))
        return files.replace(old.filter(pa.array(~stays(old))), rows, stays)

    def _firsts(self, begun: set[date], newcomers: Mapping[date, Newcomers]) -> dict[date, date]:
        """Return the first changed day of each cohort that has cells to compute or to remove."""
        changed = sorted(day for day in self.sets.changed | begun if day <= self.today)
        firsts = {cohort: cohort for cohort in self.sets.splits if cohort <= self.today}
        for cohort in newcomers.keys() - firsts.keys():
            place = bisect_left(changed, cohort)
            if place < len(changed) and self._shown(cohort, changed[place]):
                firsts[cohort] = changed[place]
        return firsts

    def _shown(self, cohort: date, first: date) -> list[date]:
        """Return the days of a cohort's cells from a day on."""
        least, most = first.toordinal(), self.today.toordinal()
        days = (cohort.toordinal() + day for day in SPLIT_DAYS)
        return [date.fromordinal(day) for day in days if least <= day <= most]

    def _cohorts(
        self, firsts: Mapping[date, date], newcomers: Mapping[date, Newcomers], files: GameFiles
    ) -> list[_Cohort]:
        bases = self._bases(firsts, files)
        buyers = BitMap.union(BitMap(), *(each.payers for each in newcomers.values()))
        found, cuts = list[_Cohort](), 0
        for cohort, first in sorted(firsts.items()):
            of_cohort = newcomers.get(cohort)
            if of_cohort is not None and of_cohort.new_by:
                base, start = bases.get(cohort), first
                if base is None:
                    start = cohort
                elif base != first:
                    start = base + timedelta(days=1)
                shown = self._shown(cohort, first)
                found.append(_cohort(cohort, shown, base, start, of_cohort, cuts, buyers))
                cuts += len(of_cohort.new_by)
        return found

    def _bases(self, firsts: Mapping[date, date], files: GameFiles) -> dict[date, date | None]:
        """Return the base of each cohort whose players stay the same; see `_Cohort`."""
        same = {cohort: first for cohort, first in firsts.items() if cohort not in self.sets.splits}
        own = files.rows_of({first for cohort, first in same.items() if (first - cohort).days in SPLIT_DAYS})
        pairs = set(zip(own.column("cohort_date").to_pylist(), own.column("event_date").to_pylist(), strict=True))
        return {
            cohort: first if (cohort, first) in pairs else _shown_before(cohort, first)
            for cohort, first in same.items()
        }

    def _computed(self, cohorts: Sequence[_Cohort], former: pa.Table, newcomers: Mapping[date, Newcomers]) -> pa.Table:
        paid, returned = self._sums(cohorts)
        shown = [(each.day, day) for each in cohorts for day in each.shown]
        cuts = [
            (each.day, *cut, len(players)) for each in cohorts for cut, players in newcomers[each.day].new_by.items()
        ]
        self.sql.give("paid", paid)
        self.sql.give("returned", returned)
        self.sql.give("former", former)
        self.sql.give("cuts", _cut_table(cuts))
        self.sql.give("shown", _pairs("cohort_date", "event_date", shown))
        self.sql.give(CALENDAR, calendar(self.zone, {day for _, day in shown}))
        starts = _pairs("cohort_date", "base_date", [(each.day, each.base) for each in cohorts])
        self.sql.give("starts", starts.append_column("is_own", pa.array([each.is_own for each in cohorts], pa.bool_())))
        return self.sql.table(_CELLS)

    def _sums(self, cohorts: Sequence[_Cohort]) -> tuple[pa.Table, pa.Table]:
        """Add up what the players of each cut paid up to each shown day, and count those who played on it."""
        by_day: defaultdict[date, list[_Cohort]] = defaultdict(list)
        for cohort in cohorts:
            for number in range(cohort.start.toordinal(), cohort.shown[-1].toordinal() + 1):
                by_day[date.fromordinal(number)].append(cohort)
        paid, returned, waiting = [_PAID.empty_table()], [_RETURNED.empty_table()], 0
        for day in sorted(by_day.keys() & self.sets.days):
            sets = self.sets.of(day)
            paid.append(_paid(sets, day, by_day[day]))
            returned.append(_returned(sets, day, by_day[day]))
            waiting += len(paid[-1])
            if waiting > _SUMMED_ROWS:
                paid, waiting = [self._summed(paid)], 0
            self.progress()
        return pa.concat_tables(paid), pa.concat_tables(returned)

    def _summed(self, paid: Iterable[pa.Table]) -> pa.Table:
        self.sql.give("paid", pa.concat_tables(paid))
        return self.sql.table(_SUMMED).cast(_PAID)


def _cohort(  # noqa: PLR0913, PLR0917 # one per attribute
    day: date,
    shown: Sequence[date],
    base: date | None,
    start: date,
    newcomers: Newcomers,
    first_cut: int,
    buyers: BitMap,
) -> _Cohort:
    numbers = as_numbers(newcomers.new & buyers)
    cuts_of_buyers = np.zeros((len(DIMENSIONS), len(numbers)), np.int32)
    for place, ((dimension, _), players) in enumerate(newcomers.new_by.items()):
        here = np.searchsorted(numbers, as_numbers(players & buyers))
        cuts_of_buyers[DIMENSIONS.index(dimension), here] = first_cut + place
    cuts = list(newcomers.new_by.values())
    return _Cohort(day, shown, base, start, cuts, first_cut, numbers, cuts_of_buyers)


def _paid(sets: DaySets, day: date, cohorts: Sequence[_Cohort]) -> pa.Table:
    """Return the bookings and the new payers of each cut on a day."""
    payers = as_numbers(sets.payers)
    is_new = np.isin(payers, as_numbers(sets.new_payers))
    columns: dict[str, list[npt.NDArray[Any]]] = {"cut": [], "event_date": [], "payer": []}
    for cohort in cohorts:
        found, of_payers, of_buyers = np.intersect1d(payers, cohort.buyers, assume_unique=True, return_indices=True)
        if len(found):
            cuts = cohort.cuts_of_buyers[:, of_buyers].ravel()
            target = cohort.next_shown(day).toordinal() - _FIRST_ORDINAL
            columns["cut"].append(cuts)
            columns["event_date"].append(np.full(len(cuts), target, np.int32))
            columns["payer"].append(np.tile(of_payers, len(DIMENSIONS)))
    joined = {name: np.concatenate([np.array([], np.int32), *parts]) for name, parts in columns.items()}
    place = joined["payer"].astype(np.int64)
    rows = pa.table(
        {
            "cut": pa.array(joined["cut"], pa.int32()),
            "event_date": pa.array(joined["event_date"].astype(np.int32), pa.int32()),
            "paid": sets.played.bookings.take(pa.array(place)),
            "new_payers": pa.array(is_new[place].astype(np.int64)),
        }
    )
    sums = rows.group_by(["cut", "event_date"]).aggregate([("paid", "sum"), ("new_payers", "sum")])
    of_day = pc.equal(sums.column("event_date"), pa.scalar(day.toordinal() - _FIRST_ORDINAL, pa.int32()))
    return pa.table(
        [sums.column("cut"), sums.column("event_date"), of_day, sums.column("paid_sum"), sums.column("new_payers_sum")],
        names=_PAID.names,
    ).cast(_PAID)


def _returned(sets: DaySets, day: date, cohorts: Sequence[_Cohort]) -> pa.Table:
    """Count the players of each cut on a day, for the cohorts that show it."""
    counts = [
        (cohort.first_cut + place, players.intersection_cardinality(sets.active))
        for cohort in cohorts
        if cohort.next_shown(day) == day
        for place, players in enumerate(cohort.cuts)
    ]
    columns = [
        pa.array([cut for cut, _ in counts], pa.int32()),
        pa.repeat(pa.scalar(day), len(counts)),
        pa.array([count for _, count in counts], pa.int64()),
    ]
    return pa.table(columns, schema=_RETURNED)


def _before(rows: pa.Table, firsts: Mapping[date, date]) -> Flags:
    """Return a flag for each row: True if it precedes the first changed day of its cohort."""
    cohorts = np.array(sorted(day.toordinal() - _FIRST_ORDINAL for day in firsts))
    first = np.array([firsts[day].toordinal() - _FIRST_ORDINAL for day in sorted(firsts)])
    of_row, days = _ordinals(rows, "cohort_date"), _ordinals(rows, "event_date")
    place = np.minimum(np.searchsorted(cohorts, of_row), len(cohorts) - 1)
    flags: Flags = (cohorts[place] != of_row) | (days < first[place])
    return flags


def _ordinals(rows: pa.Table, name: str) -> Days:
    found: Days = rows.column(name).cast(pa.int32()).to_numpy()
    return found


def _shown_before(cohort: date, day: date) -> date | None:
    """Return the last shown day of a cohort before a day."""
    ages = [age for age in SPLIT_DAYS if age < (day - cohort).days]
    return cohort + timedelta(days=ages[-1]) if ages else None


def _pairs(first: str, second: str, pairs: Sequence[tuple[date, date | None]]) -> pa.Table:
    columns = {
        name: pa.array([pair[place] for pair in pairs], pa.date32()) for place, name in enumerate((first, second))
    }
    return pa.table(columns)


def _cut_table(cuts: Sequence[tuple[Any, ...]]) -> pa.Table:
    kinds = {"cohort_date": pa.date32(), "dimension": pa.string(), "value": pa.string(), "new_players": pa.int64()}
    columns = {name: pa.array([cut[place] for cut in cuts], kind) for place, (name, kind) in enumerate(kinds.items())}
    return pa.table({"cut": pa.array(np.arange(len(cuts), dtype=np.int32)), **columns})
