"""The expected rows of the tables of KPIs: SQL over all of silver, written by the definitions of the figures."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa

from gamelake.scans.sql_engine import without_zones
from gamelake.serving.kpis import first_values

Rows = list[tuple[object, ...]]

_EVENTS = """
CREATE VIEW e AS SELECT * REPLACE (reporting_day AS event_date), date_trunc('hour', event_time) AS hour,
    coalesce(event_name = 'purchase' AND amount IS NOT NULL, false) AS is_purchase,
    coalesce(ingest_time > date_trunc('hour', event_time) + INTERVAL 4 HOUR, false) AS is_late
  FROM silver WHERE event_name IS DISTINCT FROM 'smoke_test';
CREATE VIEW firsts AS
  SELECT game_name, gamer_id, min(event_date) AS first FROM e WHERE gamer_id IS NOT NULL GROUP BY ALL;
CREATE VIEW first_values AS
  SELECT game_name, gamer_id, first, dimension, coalesce(value, 'unknown') AS value
  FROM (SELECT f.game_name, f.gamer_id, f.first,
      arg_min(e.country, (event_time, e.country)) FILTER (e.country <> '') AS country,
      arg_min(e.platform, (event_time, e.platform)) FILTER (e.platform <> '') AS platform,
      arg_min(e.app_version, (event_time, e.app_version)) FILTER (e.app_version <> '') AS app_version,
      arg_min(e.install_source, (event_time, e.install_source)) FILTER (e.install_source <> '') AS source
    FROM firsts f JOIN e ON e.game_name = f.game_name AND e.gamer_id = f.gamer_id AND e.event_date = f.first
    GROUP BY ALL)
    UNPIVOT INCLUDE NULLS (value FOR dimension IN (country, platform, app_version, source));
CREATE VIEW ranked AS
  SELECT game_name, first, dimension, value,
    row_number() OVER (PARTITION BY game_name, first, dimension ORDER BY count(*) DESC, value) AS place
  FROM first_values WHERE value NOT IN ('unknown', 'other') GROUP BY game_name, first, dimension, value;
CREATE VIEW members AS
  SELECT v.game_name, v.gamer_id, v.first, v.dimension,
    CASE WHEN v.value = 'unknown' OR place <= most_values() THEN v.value ELSE 'other' END AS value
  FROM first_values v LEFT JOIN ranked USING (game_name, first, dimension, value);
CREATE VIEW days AS SELECT DISTINCT game_name, gamer_id, event_date AS day FROM e WHERE gamer_id IS NOT NULL;
"""
EXPECTED = {
    "kpi_hourly": """
        SELECT event_date, hour, game_name, platform, app_version, count(*), count_if(is_purchase),
          sum(TRY_CAST(amount AS DECIMAL(18, 6))) FILTER (WHERE is_purchase), hour + INTERVAL 4 HOUR
        FROM e GROUP BY ALL""",
    "kpi_late": """
        SELECT event_date, hour, game_name, count(*), count_if(is_late) FROM e GROUP BY ALL""",
    "kpi_active_players": """
        SELECT d.day, d.game_name, d.dau, w.n, m.n, d.dau / m.n, provisional_until
        FROM (SELECT day, game_name, count(*) AS dau FROM days GROUP BY ALL) d,
          LATERAL (SELECT count(DISTINCT gamer_id) AS n FROM days o WHERE o.game_name = d.game_name
            AND o.day BETWEEN d.day - 6 AND d.day) w,
          LATERAL (SELECT count(DISTINCT gamer_id) AS n FROM days o WHERE o.game_name = d.game_name
            AND o.day BETWEEN d.day - 29 AND d.day) m
          JOIN calendar c ON c.game_name = d.game_name AND c.event_date = d.day""",
    "kpi_cohorts": """
        WITH sizes AS (SELECT game_name, first, count(*) AS n FROM firsts GROUP BY ALL),
        cells AS (
          SELECT CAST(first + CAST(day AS INT) AS DATE) AS event_date, game_name, first, day, n
          FROM sizes JOIN clock USING (game_name) CROSS JOIN range(366) AS numbers(day) WHERE event_date <= today),
        paid AS (
          SELECT game_name, gamer_id, event_date AS day, coalesce(sum(TRY_CAST(amount AS DECIMAL(18, 6))), 0) AS paid
          FROM e WHERE is_purchase AND gamer_id IS NOT NULL GROUP BY ALL)
        SELECT c.event_date, c.game_name, c.first, c.day, n, returned, returned / n, bookings, cumulative,
          CAST(cumulative AS DOUBLE) / n, payers - payers_before, payers, payers / n, provisional_until
        FROM cells c JOIN calendar USING (game_name, event_date),
          LATERAL (SELECT count(*) AS returned FROM firsts f JOIN days d USING (game_name, gamer_id)
            WHERE f.game_name = c.game_name AND f.first = c.first AND d.day = c.event_date) r,
          LATERAL (SELECT coalesce(sum(paid) FILTER (p.day = c.event_date), 0) AS bookings,
              coalesce(sum(paid), 0) AS cumulative, count(DISTINCT gamer_id) AS payers,
              count(DISTINCT gamer_id) FILTER (p.day < c.event_date) AS payers_before
            FROM firsts f JOIN paid p USING (game_name, gamer_id)
            WHERE f.game_name = c.game_name AND f.first = c.first AND p.day <= c.event_date) m""",
    "kpi_cohorts_by": """
        WITH sizes AS (SELECT game_name, first, dimension, value, count(*) AS n FROM members GROUP BY ALL),
        cells AS (
          SELECT CAST(first + CAST(day AS INT) AS DATE) AS event_date, game_name, first, dimension, value, day, n
          FROM sizes JOIN clock USING (game_name) CROSS JOIN range(366) AS numbers(day)
          WHERE event_date <= today AND (day <= 30 OR day IN (60, 90, 180, 365))),
        paid AS (
          SELECT game_name, gamer_id, event_date AS day, coalesce(sum(TRY_CAST(amount AS DECIMAL(18, 6))), 0) AS paid
          FROM e WHERE is_purchase AND gamer_id IS NOT NULL GROUP BY ALL)
        SELECT c.event_date, c.game_name, c.first, c.dimension, c.value, c.day, n, returned, returned / n, bookings,
          cumulative, CAST(cumulative AS DOUBLE) / n, payers - payers_before, payers, payers / n, provisional_until
        FROM cells c JOIN calendar USING (game_name, event_date),
          LATERAL (SELECT count(*) AS returned FROM members f JOIN days d USING (game_name, gamer_id)
            WHERE f.game_name = c.game_name AND f.first = c.first AND f.dimension = c.dimension AND f.value = c.value
              AND d.day = c.event_date) r,
          LATERAL (SELECT coalesce(sum(paid) FILTER (p.day = c.event_date), 0) AS bookings,
              coalesce(sum(paid), 0) AS cumulative, count(DISTINCT gamer_id) AS payers,
              count(DISTINCT gamer_id) FILTER (p.day < c.event_date) AS payers_before
            FROM members f JOIN paid p USING (game_name, gamer_id)
            WHERE f.game_name = c.game_name AND f.first = c.first AND f.dimension = c.dimension AND f.value = c.value
              AND p.day <= c.event_date) m""",
    "kpi_daily": """
        WITH s AS (
          SELECT event_date, game_name, gamer_id, session_id, epoch(max(event_time) - min(event_time)) AS seconds,
            min(event_time) AS began, max(event_time) AS ended
          FROM e WHERE session_id <> '' AND gamer_id IS NOT NULL GROUP BY ALL),
        sessions AS (
          SELECT event_date, game_name, count(*) AS n, quantile_cont(seconds, 0.5) AS p50,
            quantile_cont(seconds, 0.9) AS p90, quantile_cont(seconds, 0.99) AS p99
          FROM s GROUP BY ALL),
        -- Each minute in which a session begins, with the sessions that it is in: one of them is the peak.
        peaks AS (
          SELECT event_date, game_name, max(n) AS peak
          FROM (SELECT s.event_date, s.game_name, s.began, count(DISTINCT o.gamer_id) AS n
            FROM s JOIN s o ON o.event_date = s.event_date AND o.game_name = s.game_name
              AND date_trunc('minute', o.began) <= date_trunc('minute', s.began)
              AND date_trunc('minute', o.ended) >= date_trunc('minute', s.began)
            GROUP BY s.event_date, s.game_name, s.began)
          GROUP BY ALL),
        d AS (
          SELECT event_date, game_name, count(*) AS events, count_if(is_purchase) AS purchases,
            coalesce(sum(TRY_CAST(amount AS DECIMAL(18, 6))) FILTER (WHERE is_purchase), 0) AS bookings,
            count(DISTINCT gamer_id) AS active, count(DISTINCT gamer_id) FILTER (WHERE is_purchase) AS payers
          FROM e GROUP BY ALL)
        SELECT event_date, game_name, events, purchases, bookings, active, payers, payers / nullif(active, 0),
          CAST(bookings AS DOUBLE) / nullif(active, 0), CAST(bookings AS DOUBLE) / nullif(payers, 0),
          coalesce(n, 0), coalesce(peak, 0), p50, p90, p99, begins, ends, time_zone, provisional_until
        FROM d LEFT JOIN sessions USING (event_date, game_name) LEFT JOIN peaks USING (event_date, game_name)
          JOIN calendar USING (event_date, game_name)""",
}


def expected_kpis(silver: pa.Table, now: datetime, zones: Mapping[str, str] = MappingProxyType({})) -> dict[str, Rows]:
    """The rows that each table must have, sorted; `now` is the time that the platform's clock shows."""
    silver = silver.cast(without_zones(silver.schema))
    games = sorted(set(silver.column("game_name").to_pylist()) - {None})
    rows = zip(silver.column("game_name").to_pylist(), silver.column("event_time").to_pylist(), strict=True)
    days = [None if at is None else at.replace(tzinfo=UTC).astimezone(_zone(zones, game)).date() for game, at in rows]
    today = {game: now.astimezone(_zone(zones, game)).date() for game in games}
    with duckdb.connect() as connection:
        connection.register("silver", silver.append_column("reporting_day", pa.array(days, pa.date32())))
        connection.register(
            "clock",
            pa.table({"game_name": pa.array(games, pa.string()), "today": pa.array(today.values(), pa.date32())}),
        )
        connection.register("calendar", _calendar(zones, today, {day for day in days if day is not None}))
        connection.execute(f"CREATE MACRO most_values() AS {first_values.MOST_VALUES}")
        connection.execute(_EVENTS)
        return {name: in_order(connection.execute(sql).fetchall()) for name, sql in EXPECTED.items()}


def _zone(zones: Mapping[str, str], game: str | None) -> ZoneInfo:
    return ZoneInfo(zones.get(game or "", "UTC"))


def _calendar(zones: Mapping[str, str], today: Mapping[str, date], days: set[date]) -> pa.Table:
    """The days of each game from the first to the last one; in the zones of tests a midnight is there each day."""
    first, last = (choose({*days, *today.values()}, default=date.min).toordinal() for choose in (min, max))
    rows = []
    for game in today:
        for number in range(first, last + 1):
            begins, ends = (_midnight(number + more, _zone(zones, game)) for more in (0, 1))
            until, day = ends + timedelta(minutes=180), date.fromordinal(number)
            rows.append((game, day, begins, ends, zones.get(game, "UTC"), until))
    moment = pa.timestamp("us")
    kinds = (pa.string(), pa.date32(), moment, moment, pa.string(), moment)
    names = ("game_name", "event_date", "begins", "ends", "time_zone", "provisional_until")
    fields = list(zip(names, kinds, strict=True))
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], pa.schema(fields))


def _midnight(ordinal: int, zone: ZoneInfo) -> datetime:
    day = date.fromordinal(ordinal)
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC).replace(tzinfo=None)


def in_order(rows: Rows) -> Rows:
    """Rows that can be compared: sorted, floating-point numbers rounded, times without a zone."""
    return sorted((tuple(map(_plain, row)) for row in rows), key=repr)


def _plain(value: object) -> object:
    if isinstance(value, float):
        return round(value, 9)
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
