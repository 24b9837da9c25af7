"""Checks of a game's silver table for one day: against its last days, silver/events and the game's gold.

Thresholds are wide, so that each finding is worth an investigation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from math import log
from statistics import median

import duckdb
from deltalake import DeltaTable

from gamelake.delta.appends import schema_of
from gamelake.delta.listing import has_log
from gamelake.delta.log.codec import live_files
from gamelake.delta.tables import open_table
from gamelake.model.naming import SILVER_EVENTS, game_table
from gamelake.objects.store import Store
from gamelake.quality.check_findings import Bounds, CheckStatus, TableFinding, checks_failed
from gamelake.quality.gold_check import GoldCheck
from gamelake.scans.datasets import dataset

_HISTORY, _LEAST_HISTORY = 7, 3
_LEAST_VOLUME, _MOST_VOLUME = 0.5, 3.0
# A population stability index over a quarter is a large shift by common use.
_LARGEST_SHIFT = 0.25
_SHIFTING = ("event_name", "platform", "app_version")
_SLACK_SECONDS = 3600
_DAY_SECONDS = 86_400
# How many differing rows a finding has as examples.
_NAMED = 3
# On a usual day at least this share of rows was ingested before the end of the day.
_IN_TIME_SHARE = 0.5
# An hour that usually has fewer rows may have none.
_BUSY_ROWS = 10
_MICROSECONDS = 1_000_000
_HOUR = 3600 * _MICROSECONDS


@dataclass
class GameChecks:
    """The checks of one game for a past day."""

    store: Store
    game: str
    day: date
    _connection: duckdb.DuckDBPyConnection = field(default_factory=lambda: duckdb.connect(":memory:"))

    def findings(self) -> Iterator[TableFinding]:
        """Run all checks; one that can't be made fails this game, and no other."""
        try:
            yield from self._all()
        except Exception as error:  # whatever is wrong with a game's table is that game's failure
            yield checks_failed(self.game, f"{type(error).__name__}: {error}")

    def _all(self) -> Iterator[TableFinding]:
        handle = open_table(self.store.location, self.table)
        self._register("all_rows", self.table, handle)
        self._leave_out_late_days(handle)
        yield self._unique()
        yield self._volume()
        yield self._freshness()
        yield self._hours()
        yield self._shared()
        yield GoldCheck(self.store, self.game).finding()
        yield self._drift(handle)
        yield from (self._shift(column) for column in _SHIFTING if column in schema_of(handle).names)

    def _leave_out_late_days(self, handle: DeltaTable) -> None:
        """Create the view `rows` with the day, and the days before it without those that have mostly late events.

        Days before the game's first day have only late events, so they don't show what is usual.
        """
        in_time = "ingest_time::DATE <= event_date" if "ingest_time" in schema_of(handle).names else "true"
        usual = self._query(
            f"SELECT event_date FROM all_rows WHERE event_date < DATE '{self.day}' GROUP BY 1 "  # noqa: S608 # constants
            f"HAVING {_IN_TIME_SHARE} * count(*) <= count(*) FILTER (coalesce({in_time}, true))"
        )
        days = ", ".join(f"DATE '{day}'" for day in (self.day, *(day for (day,) in usual)))
        self._connection.execute(f"CREATE VIEW rows AS SELECT * FROM all_rows WHERE event_date IN ({days})")  # noqa: S608 # days

    @property
    def table(self) -> str:
        """The game's silver table."""
        return game_table(self.game)

    def _register(self, name: str, table: str, handle: DeltaTable, since: date | None = None) -> None:
        """Register the rows of a table from `since` on, by default the last days, as a view."""
        first = (since or self.day - timedelta(days=_HISTORY)).isoformat()
        files = [
            each
            for each in live_files(handle, with_deleted_rows=True)
            if first <= (each.partition.get("event_date") or first)
        ]
        schema = schema_of(handle)
        self._connection.register(name, dataset(self.store.location, table, schema, files))

    def _query(self, sql: str) -> list[tuple[object, ...]]:
        return self._connection.execute(sql).fetchall()

    def _one(self, sql: str) -> float:
        ((value,),) = self._query(sql)
        return float(value or 0)  # type: ignore[arg-type] # a number

    def _by_day(self, figure: str) -> dict[date, float]:
        found = self._query(f"SELECT event_date, {figure} FROM rows WHERE event_date <= DATE '{self.day}' GROUP BY 1")  # noqa: S608 # constants
        return {day: float(value) for day, value in found}  # type: ignore[misc, arg-type] # a day and a number

    def _finding(self, check: str, observed: float | None, bounds: Bounds | None, **details: object) -> TableFinding:
        """The finding of a check; skipped if there are no bounds."""
        status = CheckStatus.SKIPPED
        if bounds is not None and observed is not None:
            status = CheckStatus.PASSED if bounds.hold(observed) else CheckStatus.FAILED
        return TableFinding(table=self.table, check=check, status=status, observed=observed, bounds=bounds, **details)  # type: ignore[arg-type] # checked by it

    def _unique(self) -> TableFinding:
        twice = self._one(
            f"SELECT count(*) - count(DISTINCT event_id) FROM rows WHERE event_date = DATE '{self.day}' "  # noqa: S608 # constants
            "AND event_id <> ''"
        )
        return self._finding("event_ids_are_unique", twice, Bounds(0, 0), expected=0.0)

    def _volume(self) -> TableFinding:
        by_day = self._by_day("count(*)")
        today, before = by_day.pop(self.day, 0.0), list(by_day.values())
        usual = median(before) if len(before) >= _LEAST_HISTORY else None
        bounds = None if usual is None else Bounds(_LEAST_VOLUME * usual, _MOST_VOLUME * usual)
        return self._finding("volume", today, bounds, expected=usual)

    def _freshness(self) -> TableFinding:
        """Return how long before the end of the day its newest event was, compared with the days before."""
        gaps = {
            day: _DAY_SECONDS - newest % _DAY_SECONDS
            for day, newest in self._by_day(f"max(epoch_us(event_time)) / {_MICROSECONDS}").items()
        }
        today, before = gaps.pop(self.day, float(_DAY_SECONDS)), list(gaps.values())
        most = 2 * max(before) + _SLACK_SECONDS if len(before) >= _LEAST_HISTORY else None
        bounds = None if most is None else Bounds(None, most)
        return self._finding("freshness", today, bounds, expected=most, detail="seconds")

    def _hours(self) -> TableFinding:
        """Hours without rows that had rows on each of the days before."""
        found = self._query(
            f"SELECT hour, coalesce(min(n) FILTER (event_date < DATE '{self.day}'), 0), count(*) FILTER (event_date < "  # noqa: S608 # constants
            f"DATE '{self.day}'), count(*) FILTER (event_date = DATE '{self.day}') FROM (SELECT event_date, "
            f"epoch_us(event_time) // {_HOUR} % 24 AS hour, count(*) AS n FROM rows GROUP BY ALL) GROUP BY 1 ORDER BY 1"
        )
        days = int(self._one(f"SELECT count(DISTINCT event_date) FROM rows WHERE event_date < DATE '{self.day}'"))  # noqa: S608 # constants
        hours: list[tuple[int, int, int, int]] = found  # type: ignore[assignment] # four numbers each
        missing = [hour for hour, least, on, now in hours if on == days and least >= _BUSY_ROWS and not now]
        detail = f"without rows: {', '.join(f'{hour:02}:00' for hour in missing)}" if missing else ""
        bounds = Bounds(0, 0) if days >= _LEAST_HISTORY else None
        return self._finding("hours_are_there", float(len(missing)), bounds, expected=0.0, detail=detail)

    def _shared(self) -> TableFinding:
        if not has_log(self.store, SILVER_EVENTS):
            return self._finding("rows_are_in_silver_events", None, None)
        self._register("shared", SILVER_EVENTS, open_table(self.store.location, SILVER_EVENTS), self.day)
        mine = self._one(f"SELECT count(*) FROM rows WHERE event_date = DATE '{self.day}'")  # noqa: S608 # constants
        theirs = self._one(
            f"SELECT count(*) FROM shared WHERE event_date = DATE '{self.day}' "  # noqa: S608 # constants
            "AND game_name IN (SELECT DISTINCT game_name FROM rows)"
        )
        detail = "" if mine == theirs else self._differing()
        return self._finding("rows_are_in_silver_events", theirs, Bounds(mine, mine), expected=mine, detail=detail)

    def _differing(self) -> str:
        """Hours and coordinates of some rows that only one table has; empty if the rows have no coordinates."""
        wanted = "SELECT date_part('hour', event_time), kafka_partition, kafka_offset"
        mine = f"{wanted} FROM rows WHERE event_date = DATE '{self.day}'"  # constants
        theirs = (
            f"{wanted} FROM shared WHERE event_date = DATE '{self.day}' "  # noqa: S608 # constants
            "AND game_name IN (SELECT game_name FROM rows)"
        )
        try:
            lost = self._query(f"({mine} EXCEPT ALL {theirs}) ORDER BY 1, 2, 3 LIMIT {_NAMED}")
            added = self._query(f"({theirs} EXCEPT ALL {mine}) ORDER BY 1, 2, 3 LIMIT {_NAMED}")
        except duckdb.BinderException:
            return ""
        named = (("missing there", lost), ("missing here", added))
        return "; ".join(
            f"{word}: {', '.join(f'{partition}:{offset} of {hour:02}:00' for hour, partition, offset in rows)}"
            for word, rows in named
            if rows
        )

    def _drift(self, handle: DeltaTable) -> TableFinding:
        """Columns that have values only on the day, or only before it."""
        names = schema_of(handle).names
        filled = [f"count(\"{name}\") FILTER (WHERE event_date < DATE '{self.day}')" for name in names]
        now = [f"count(\"{name}\") FILTER (WHERE event_date = DATE '{self.day}')" for name in names]
        (counts,) = self._query(f"SELECT {', '.join(filled + now)} FROM rows")  # noqa: S608 # names of columns
        before, today = counts[: len(names)], counts[len(names) :]
        if not any(before):
            return self._finding("columns_are_the_same", None, None)
        new = [name for name, then, now in zip(names, before, today, strict=True) if now and not then]
        gone = [name for name, then, now in zip(names, before, today, strict=True) if then and not now]
        detail = "; ".join(f"{word}: {', '.join(which)}" for word, which in (("new", new), ("empty", gone)) if which)
        return self._finding("columns_are_the_same", float(len(new) + len(gone)), Bounds(0, 0), detail=detail)

    def _shift(self, column: str) -> TableFinding:
        """The population stability index of a column's values against the days before."""
        found = self._query(
            f"SELECT coalesce({column}, ''), count(*) FILTER (WHERE event_date < DATE '{self.day}'), "  # noqa: S608 # constants
            f"count(*) FILTER (WHERE event_date = DATE '{self.day}') FROM rows GROUP BY 1 ORDER BY 1"
        )
        before = [float(row[1]) for row in found]  # type: ignore[arg-type] # a number
        today = [float(row[2]) for row in found]  # type: ignore[arg-type] # likewise
        check = f"{column}_is_distributed_as_before"
        if not sum(before) or not sum(today):
            return self._finding(check, None, None)
        index = stability(before, today)
        return self._finding(check, index, Bounds(None, _LARGEST_SHIFT), expected=_LARGEST_SHIFT)


def stability(before: Sequence[float], today: Sequence[float]) -> float:
    """Compute the population stability index of two lists of counts of the same values; 0 if the shares are equal.

    Source: N. Siddiqi, "Credit Risk Scorecards" (2006): sum of (b - a) * ln(b / a) over the shares a and b.
    """
    half = 0.5  # so that no share is 0
    old, new = sum(before) + half * len(before), sum(today) + half * len(today)
    shares = [((a + half) / old, (b + half) / new) for a, b in zip(before, today, strict=True)]
    return sum((b - a) * log(b / a) for a, b in shares)
