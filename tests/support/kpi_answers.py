"""The expected rows of the tables of KPIs: SQL over all of silver, written by the definitions of the figures."""

from datetime import date, datetime

import duckdb
import pyarrow as pa

from gamelake.scans.sql_engine import without_zones

Rows = list[tuple[object, ...]]

_EVENTS = """
CREATE VIEW e AS SELECT *, date_trunc('hour', event_time) AS hour,
    coalesce(event_name = 'purchase' AND amount IS NOT NULL, false) AS is_purchase,
    coalesce(ingest_time > date_trunc('hour', event_time) + INTERVAL 4 HOUR, false) AS is_late
  FROM silver WHERE event_name IS DISTINCT FROM 'smoke_test';
CREATE VIEW firsts AS
  SELECT game_name, gamer_id, min(event_date) AS first FROM e WHERE gamer_id IS NOT NULL GROUP BY ALL;
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
        SELECT d.day, d.game_name, d.dau, w.n, m.n, d.dau / m.n, d.day + INTERVAL 27 HOUR
        FROM (SELECT day, game_name, count(*) AS dau FROM days GROUP BY ALL) d,
          LATERAL (SELECT count(DISTINCT gamer_id) AS n FROM days o WHERE o.game_name = d.game_name
            AND o.day BETWEEN d.day - 6 AND d.day) w,
          LATERAL (SELECT count(DISTINCT gamer_id) AS n FROM days o WHERE o.game_name = d.game_name
            AND o.day BETWEEN d.day - 29 AND d.day) m""",
    "kpi_retention": """
        WITH back AS (
          SELECT first, f.game_name, f.gamer_id, bool_or(d.day = first + 1) AS r1, bool_or(d.day = first + 7) AS r7,
            bool_or(d.day = first + 30) AS r30
          FROM firsts f JOIN days d USING (game_name, gamer_id) GROUP BY ALL),
        sums AS (
          SELECT first, game_name, count(*) AS n, count_if(r1) AS r1, count_if(r7) AS r7, count_if(r30) AS r30
          FROM back GROUP BY ALL),
        counts AS (
          SELECT first, game_name, n, CASE WHEN first + 1 <= today THEN r1 END AS c1,
            CASE WHEN first + 7 <= today THEN r7 END AS c7, CASE WHEN first + 30 <= today THEN r30 END AS c30
          FROM sums CROSS JOIN clock)
        SELECT first, game_name, n, c1, c7, c30, c1 / n, c7 / n, c30 / n FROM counts""",
    "kpi_daily": """
        WITH s AS (
          SELECT event_date, game_name, gamer_id, session_id, epoch(max(event_time) - min(event_time)) AS seconds
          FROM e WHERE session_id <> '' AND gamer_id IS NOT NULL GROUP BY ALL),
        sessions AS (
          SELECT event_date, game_name, count(*) AS n, quantile_cont(seconds, 0.5) AS p50,
            quantile_cont(seconds, 0.9) AS p90, quantile_cont(seconds, 0.99) AS p99
          FROM s GROUP BY ALL),
        d AS (
          SELECT event_date, game_name, count(*) AS events, count_if(is_purchase) AS purchases,
            coalesce(sum(TRY_CAST(amount AS DECIMAL(18, 6))) FILTER (WHERE is_purchase), 0) AS bookings,
            count(DISTINCT gamer_id) AS active, count(DISTINCT gamer_id) FILTER (WHERE is_purchase) AS payers
          FROM e GROUP BY ALL)
        SELECT event_date, game_name, events, purchases, bookings, active, payers, payers / nullif(active, 0),
          CAST(bookings AS DOUBLE) / nullif(active, 0), CAST(bookings AS DOUBLE) / nullif(payers, 0),
          coalesce(n, 0), p50, p90, p99, event_date + INTERVAL 27 HOUR
        FROM d LEFT JOIN sessions USING (event_date, game_name)""",
}


def expected_kpis(silver: pa.Table, today: date) -> dict[str, Rows]:
    """The rows that each table must have, sorted; `today` is the day that the platform's clock shows."""
    with duckdb.connect() as connection:
        connection.register("silver", silver.cast(without_zones(silver.schema)))
        connection.register("clock", pa.table({"today": pa.array([today], pa.date32())}))
        connection.execute(_EVENTS)
        return {name: in_order(connection.execute(sql).fetchall()) for name, sql in EXPECTED.items()}


def in_order(rows: Rows) -> Rows:
    """Rows that can be compared: sorted, floating-point numbers rounded, times without a zone."""
    return sorted((tuple(map(_plain, row)) for row in rows), key=repr)


def _plain(value: object) -> object:
    if isinstance(value, float):
        return round(value, 9)
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
