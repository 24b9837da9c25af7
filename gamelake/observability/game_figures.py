"""Reports figures of each game's gold tables as metrics: unusual sources of its economy, crashes and load times."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from gamelake.delta.appends import schema_of
from gamelake.delta.log.codec import live_files
from gamelake.delta.tables import open_table
from gamelake.model.naming import game_of
from gamelake.model.observers import harmless
from gamelake.objects.store import Store
from gamelake.observability.metrics.serving.kpis import KpiFigure, KpiMetric, KpiTelemetry
from gamelake.scans.datasets import dataset
from gamelake.scans.sql_engine import engine
from gamelake.serving.gold.definition import PARTITION
from gamelake.serving.gold.refresh import GoldRefresh, Refreshed, RefreshOutcome
from gamelake.serving.gold.runner import FailedRefresh

# The baseline of a source: the median of the days among these on which it gave something, if there are enough of them.
BASELINE_DAYS, LEAST_BASELINE_DAYS, UNUSUAL = 14, 3, 3
_UNUSUAL_SOURCES = f"""
    WITH sources AS (SELECT * FROM rows WHERE item <> '' AND reason IS NOT NULL AND gained > 0),
    baselines AS (
      SELECT item, reason, median(gained) AS usual FROM sources CROSS JOIN clock WHERE event_date < today
      GROUP BY ALL HAVING count(*) >= {LEAST_BASELINE_DAYS})
    SELECT count(*) FILTER (gained > {UNUSUAL} * usual) AS figure
    FROM sources CROSS JOIN clock LEFT JOIN baselines USING (item, reason) WHERE event_date = today
    HAVING count(*) > 0"""  # noqa: S608 # constants
_CRASH_FREE = "SELECT 1 - sum(crashed_sessions) / nullif(sum(sessions), 0) AS figure FROM rows HAVING sum(sessions) > 0"
_LOAD_SECONDS = "SELECT arg_max(load_ms_p90, loads) / 1000 AS figure FROM rows HAVING sum(loads) > 0"
# By aggregate: the metric, its SQL over the rows of some days, and how many days before today it reads.
_FIGURES: Mapping[str, tuple[KpiMetric, str, int]] = {
    "economy_daily": (KpiMetric.UNUSUAL_SOURCES, _UNUSUAL_SOURCES, BASELINE_DAYS),
    "version_stability": (KpiMetric.CRASH_FREE_SESSIONS, _CRASH_FREE, 0),
    "load_times": (KpiMetric.LOAD_SECONDS, _LOAD_SECONDS, 0),
}


class GameFiguresReporter:
    """An observer of gold's runs; none of its methods raises. It reads only the tables that a run has changed.

    Args:
        store: the lakehouse.
        titles: the title of each game, by its name in paths.
        to: shows the figures; a game without a row on the current day has no figure.
        now: returns the current time.
    """

    def __init__(
        self,
        store: Store,
        titles: Mapping[str, str],
        to: KpiTelemetry,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store, self._titles, self._to, self._now = store, titles, to, now
        # The current day of each table's game, in the game's time zone.
        self._days: dict[str, date] = {}
        self._tables: dict[str, GoldRefresh] = {}
        self._changed: set[str] = set()
        self._figures: dict[str, KpiFigure] = {}

    @harmless
    def table_refreshed(self, refresh: GoldRefresh, result: Refreshed | FailedRefresh) -> None:
        """Remember a table that has changed."""
        if refresh.definition.spec.name not in _FIGURES or isinstance(result, FailedRefresh) or result.version < 0:
            return
        if result.outcome is not RefreshOutcome.UNCHANGED or refresh.table not in self._tables:
            self._changed.add(refresh.table)
        self._tables[refresh.table] = refresh

    @harmless
    def run_finished(self, seconds: float) -> None:
        """Read the changed tables, and those of games with a new day, and show the figures."""
        now = self._now()
        days = {table: each.zones.zone(self._title(each)).day(now) for table, each in self._tables.items()}
        changed = sorted(self._changed | {table for table, day in days.items() if self._days.get(table) != day})
        self._days, self._changed = days, set()
        for table in changed:
            self._figures.pop(table, None)
        with ThreadPoolExecutor(self._store.at_once) as pool:
            list(pool.map(self._read, (self._tables[table] for table in changed)))
        self._to.show_games(list(self._figures.values()))

    def mark_alive(self) -> None:
        """Do nothing."""

    @harmless
    def _read(self, refresh: GoldRefresh) -> None:
        """Read one table's figure; a fault of the table leaves the other figures."""
        metric, sql, days = _FIGURES[refresh.definition.spec.name]
        self._figures[refresh.table] = KpiFigure(metric, (self._title(refresh),), self._value(refresh, sql, days))

    def _title(self, refresh: GoldRefresh) -> str:
        game = game_of(refresh.source) or ""
        return self._titles.get(game, game)

    def _value(self, refresh: GoldRefresh, sql: str, days: int) -> float | None:
        today = self._days[refresh.table]
        handle = open_table(self._store.location, refresh.table)
        rows = dataset(self._store.location, refresh.table, schema_of(handle), live_files(handle))
        with engine(1) as queries:
            queries.give(
                "rows", rows.to_table(filter=pc.field(PARTITION).isin(_days(today - timedelta(days=days), today)))
            )
            queries.give("clock", pa.table({"today": pa.array([today], pa.date32())}))
            found = queries.table(sql).columns[0].to_pylist()
        return None if not found or found[0] is None else float(found[0])


def _days(first: date, last: date) -> pa.Array:
    return pa.array([first + timedelta(days=number) for number in range((last - first).days + 1)], pa.date32())
