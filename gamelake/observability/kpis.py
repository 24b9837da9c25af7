"""Reports refreshes of KPIs as metrics: the newest hour and day of all games, the same for each of them."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gamelake.contract.time_zones import Zones
from gamelake.model.observers import harmless
from gamelake.observability.metrics.serving.kpis import KpiFigure, KpiMetric, KpiTelemetry
from gamelake.serving.gold.history import TablePosition
from gamelake.serving.kpis import tables as kpi
from gamelake.serving.kpis.cohorts import rows_of_day
from gamelake.serving.kpis.refresh import KpiRefresh, KpisRefreshed
from gamelake.serving.kpis.sources import HOURS, waiting_since

_LATE = "gold/kpi_late"
_DAILY = {
    "events": KpiMetric.DAY_EVENTS,
    "bookings": KpiMetric.DAY_BOOKINGS,
    "payers": KpiMetric.PAYERS,
    "conversion": KpiMetric.CONVERSION,
    "arpdau": KpiMetric.ARPDAU,
    "sessions": KpiMetric.SESSIONS,
    "peak_concurrent_players": KpiMetric.PEAK_CONCURRENT,
}
_QUANTILES = {"0.5": "session_seconds_p50", "0.9": "session_seconds_p90", "0.99": "session_seconds_p99"}
# The days after the first one that have series.
CURVE_DAYS = (1, 3, 7, 14, 30, 60, 90, 180, 365)
_WINDOWS = {"1d": "dau", "7d": "wau", "30d": "mau"}
_Rows = Iterable[Mapping[str, Any]]


def newest_figures(refresh: KpiRefresh, now: datetime) -> list[KpiFigure]:
    """Read the figures of the newest day, and of the newest hour, that have begun and that any game has.

    Days begin at another time in each zone. If one game has figures of its present day, each game shows its own.
    A game without a row there has no figure: its last ones would pass for present ones.
    """
    daily, active, cohorts = (refresh.tables[table.name] for table in (kpi.DAILY, kpi.ACTIVE_PLAYERS, kpi.COHORTS))
    for table in (daily, active, cohorts):
        table.open()
    days = daily.rows()
    newest = _newest_days(days, refresh.zones, now)
    if not len(newest):
        return []
    found = newest.column("event_date").unique().to_pylist()
    of_cohorts = pa.concat_tables([rows_of_day(cohorts, day) for day in found])
    # An hour in which a day begins has rows of two days.
    first = min(found) - timedelta(days=1 if refresh.zones.names else 0)
    return [
        *_of_hour(_rows_of(refresh, HOURS.path, {first, *found}), now),
        *_of_day(_of_each(newest, days).to_pylist()),
        *_of_late(_rows_of(refresh, _LATE, found), newest),
        *_of_players(_of_each(newest, active.rows()).to_pylist()),
        *_of_cohorts(_of_each(newest, of_cohorts).filter(pc.field("day").isin([0, *CURVE_DAYS])).to_pylist()),
    ]


def _newest_days(days: pa.Table, zones: Zones, now: datetime) -> pa.Table:
    """Return the day of each game that is as long ago as the newest day of any; `game_name` and `event_date`."""
    games = days.column("game_name").unique()
    today_of = pa.array([zones.zone(game).day(now) for game in games.to_pylist()], pa.date32())
    today = pa.table({"game_name": games, "today": today_of})
    dated = days.select(["game_name", "event_date"]).join(today, "game_name")
    begun = dated.filter(pc.field("event_date") <= pc.field("today"))
    ages = pc.days_between(begun.column("event_date"), begun.column("today"))
    return begun.filter(pc.equal(ages, pc.min(ages))).select(["game_name", "event_date"])


def _of_each(newest: pa.Table, rows: pa.Table) -> pa.Table:
    return rows.join(newest, ["game_name", "event_date"], join_type="left semi")


def _rows_of(refresh: KpiRefresh, table: str, days: Iterable[date]) -> pa.Table | None:
    found = [rows for day in days if (rows := refresh.sources.rows_of_day(table, day)) is not None]
    return pa.concat_tables(found) if found else None


def _of_hour(hours: pa.Table | None, now: datetime) -> Iterator[KpiFigure]:
    if hours is None:
        return
    hours = hours.filter(
        (pc.field("hour") <= pa.scalar(now, hours.schema.field("hour").type)) & (pc.field("events") > 0)
    )
    newest = pc.max(hours.column("hour"))
    if newest.as_py() is None:
        return
    yield KpiFigure(KpiMetric.NEWEST_HOUR, (), newest.as_py().timestamp())
    sums = hours.filter(pc.field("hour") == newest).group_by("game_name")
    for row in sums.aggregate([("events", "sum"), ("bookings", "sum")]).to_pylist():
        yield KpiFigure(KpiMetric.HOUR_EVENTS, (row["game_name"],), row["events_sum"])
        yield KpiFigure(KpiMetric.HOUR_BOOKINGS, (row["game_name"],), float(row["bookings_sum"] or 0))


def _of_day(rows: _Rows) -> Iterator[KpiFigure]:
    for row in rows:
        game = row["game_name"]
        for column, metric in _DAILY.items():
            yield KpiFigure(metric, (game,), None if row[column] is None else float(row[column]))
        for quantile, column in _QUANTILES.items():
            yield KpiFigure(KpiMetric.SESSION_SECONDS, (game, quantile), row[column])


def _of_late(hours: pa.Table | None, newest: pa.Table) -> Iterator[KpiFigure]:
    if hours is not None:
        for row in (
            _of_each(newest, hours).group_by("game_name").aggregate([("arrived", "sum"), ("late", "sum")]).to_pylist()
        ):
            if row["arrived_sum"]:
                yield KpiFigure(KpiMetric.DAY_LATE_EVENTS, (row["game_name"],), row["late_sum"])


def _of_players(rows: _Rows) -> Iterator[KpiFigure]:
    for row in rows:
        game = row["game_name"]
        yield KpiFigure(KpiMetric.STICKINESS, (game,), row["stickiness"])
        for window, column in _WINDOWS.items():
            yield KpiFigure(KpiMetric.ACTIVE_PLAYERS, (game, window), row[column])


def _of_cohorts(rows: _Rows) -> Iterator[KpiFigure]:
    for row in rows:
        game, day = row["game_name"], row["day"]
        yield KpiFigure(KpiMetric.LTV, (game, f"{day}d"), row["ltv"])
        if day == 0:
            yield KpiFigure(KpiMetric.NEW_PLAYERS, (game,), row["new_players"])
        else:
            yield KpiFigure(KpiMetric.RETENTION, (game, f"{day}d"), row["returned_retention"])


class KpiReporter:
    """An observer of refreshes; none of its methods raises."""

    def __init__(self, to: KpiTelemetry, refresh: KpiRefresh) -> None:
        self._to = to
        self._refresh = refresh
        self._positions: Mapping[str, TablePosition] = {}

    @harmless
    def refreshed(self, done: KpisRefreshed) -> None:
        """Show the figures after a refresh."""
        self._positions = done.positions
        self._to.refreshed(done.seconds, len(done.failed))
        self._to.show(newest_figures(self._refresh, datetime.now(UTC)))
        self._show_delay()

    @harmless
    def failed(self) -> None:
        """Show that a refresh brought nothing."""
        self._positions = self._positions or self._refresh.positions()
        self._show_delay()

    def _show_delay(self) -> None:
        self._to.wait_since(waiting_since(self._refresh.store, self._positions))
