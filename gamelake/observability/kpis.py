"""Reports the KPI query's batches as metrics."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gamelake.observability.metrics.best_effort import harmless
from gamelake.observability.metrics.kpis import KpiFigure, KpiMetric, KpiTelemetry
from gamelake.serving.kpis import definitions as kpi
from gamelake.serving.kpis.aggregation import KpiUpdate
from gamelake.serving.kpis.day_tables import DayTable

_SHOWN = (kpi.HOURLY, kpi.DAILY, kpi.ACTIVE_PLAYERS, kpi.RETENTION)
_DAILY = {
    "events": KpiMetric.DAY_EVENTS,
    "bookings": KpiMetric.DAY_BOOKINGS,
    "payers": KpiMetric.PAYERS,
    "conversion": KpiMetric.CONVERSION,
    "arpdau": KpiMetric.ARPDAU,
    "players_error": KpiMetric.PLAYERS_ERROR,
    "sessions": KpiMetric.SESSIONS,
}
_QUANTILES = {"0.5": "session_seconds_p50", "0.9": "session_seconds_p90", "0.99": "session_seconds_p99"}
_WINDOWS = {"1d": "dau", "7d": "wau", "30d": "mau"}


class NewestFigures:
    """Remembers which day is the newest, so that a batch of late events shows nothing old."""

    def __init__(self) -> None:
        self._day = date.min

    def in_tables(self, tables: Mapping[str, DayTable]) -> list[KpiFigure]:
        """What tables that are open have of their newest day."""
        days = tables[kpi.DAILY.name].days()
        if not days:
            return []
        wanted = {table.name: {max(days)} for table in _SHOWN}
        wanted[kpi.RETENTION.name] = tables[kpi.RETENTION.name].days()
        return self.in_rows({name: tables[name].rows(of) for name, of in wanted.items()})

    def in_rows(self, rows: Mapping[str, pa.Table]) -> list[KpiFigure]:
        """The figures of the newest day of a batch, none if that day is older than the one shown.

        Args:
            rows: the rows that the batch wrote, by KPI table, with the columns of the table's definition.
        """
        newest = max(rows[kpi.DAILY.name].column("event_date").to_pylist(), default=date.min)
        if newest < self._day or newest == date.min:
            return []
        self._day = newest
        hours = _of(rows[kpi.HOURLY.name], "event_date", newest)
        return [
            *_of_hour(hours),
            *_of_day(_of(rows[kpi.DAILY.name], "event_date", newest).to_pylist()),
            *_of_players(_of(rows[kpi.ACTIVE_PLAYERS.name], "event_date", newest).to_pylist()),
            *_of_cohorts(rows[kpi.RETENTION.name], newest),
        ]


def _of(rows: pa.Table, column: str, day: date) -> pa.Table:
    return rows.filter(pc.field(column) == pa.scalar(day))


def _of_hour(hours: pa.Table) -> Iterator[KpiFigure]:
    newest = pc.max(hours.column("hour"))
    yield KpiFigure(KpiMetric.NEWEST_HOUR, (), newest.as_py().timestamp())
    rows = hours.filter(pc.field("hour") == newest)
    sums = rows.group_by("game_name").aggregate([("events", "sum"), ("bookings", "sum")])
    for row in sums.to_pylist():
        yield KpiFigure(KpiMetric.HOUR_EVENTS, (row["game_name"],), row["events_sum"])
        yield KpiFigure(KpiMetric.HOUR_BOOKINGS, (row["game_name"],), float(row["bookings_sum"]))


def _of_day(rows: Iterable[Mapping[str, Any]]) -> Iterator[KpiFigure]:
    for row in rows:
        game = row["game_name"]
        for column, metric in _DAILY.items():
            yield KpiFigure(metric, (game,), None if row[column] is None else float(row[column]))
        for quantile, column in _QUANTILES.items():
            yield KpiFigure(KpiMetric.SESSION_SECONDS, (game, quantile), row[column])


def _of_players(rows: Iterable[Mapping[str, Any]]) -> Iterator[KpiFigure]:
    for row in rows:
        game = row["game_name"]
        yield KpiFigure(KpiMetric.STICKINESS, (game,), row["stickiness"])
        for window, column in _WINDOWS.items():
            yield KpiFigure(KpiMetric.ACTIVE_PLAYERS, (game, window), row[column])


def _of_cohorts(rows: pa.Table, today: date) -> Iterator[KpiFigure]:
    for row in rows.to_pylist():
        age, game = (today - row["cohort_date"]).days, row["game_name"]
        if age == 0:
            yield KpiFigure(KpiMetric.NEW_PLAYERS, (game,), row["new_players"])
        elif age in kpi.RETENTION_DAYS:
            yield KpiFigure(KpiMetric.RETENTION, (game, f"{age}d"), row[f"day{age}_retention"])


class KpiReporter:
    """An observer of batches; begins with what the tables, which are open, hold already."""

    def __init__(self, to: KpiTelemetry, tables: Mapping[str, DayTable]) -> None:
        self._to = to
        self._newest = NewestFigures()
        self._show_what_is_there(tables)

    @harmless
    def updated(self, updated: KpiUpdate, seconds: float) -> None:
        """The tables have a batch."""
        self._to.updated(updated.late, seconds)
        self._to.show(self._newest.in_rows(updated.rows))

    @harmless
    def _show_what_is_there(self, tables: Mapping[str, DayTable]) -> None:
        self._to.show(self._newest.in_tables(tables))
