"""The expected rows of the KPI tables: SQL over all events, written by the definitions of the figures."""

from collections.abc import Sequence
from datetime import datetime

import duckdb

from gamelake.storage.sql_engine import without_zones
from tests.silver_events import Event, as_rows

Rows = list[tuple[object, ...]]

_EVENTS = """
CREATE VIEW happened AS SELECT *, least(event_time, ingest_time) AS moment FROM silver;
CREATE VIEW e AS SELECT *, CAST(moment AS DATE) AS day, date_trunc('hour', moment) AS hour FROM happened;
CREATE VIEW firsts AS SELECT game_name, gamer_id, min(day) AS first FROM e WHERE gamer_id IS NOT NULL GROUP BY ALL;
CREATE VIEW days AS SELECT DISTINCT game_name, gamer_id, day FROM e WHERE gamer_id IS NOT NULL;
"""
EXPECTED = {
    "kpi_hourly": """
        SELECT day, hour, game_name, platform, app_version, count(*), count(*) FILTER (WHERE event_name = 'purchase'),
          coalesce(sum(TRY_CAST(amount AS DECIMAL(18, 6))), 0)
        FROM e GROUP BY ALL""",
    "kpi_player_days": """
        SELECT day, game_name, gamer_id, bool_or(event_name = 'purchase') FROM e WHERE gamer_id IS NOT NULL
        GROUP BY ALL""",
    "kpi_players": "SELECT first, game_name, gamer_id, 0 FROM firsts",
    "kpi_sessions": """
        SELECT day, game_name, gamer_id, session_id, min(moment), max(moment), 0 FROM e WHERE session_id IS NOT NULL
        GROUP BY ALL""",
    "kpi_active_players": """
        SELECT d.day, d.game_name, d.dau, w.n, m.n, d.dau / m.n, 0
        FROM (SELECT day, game_name, count(*) AS dau FROM days GROUP BY ALL) d,
          LATERAL (SELECT count(DISTINCT gamer_id) AS n FROM days o WHERE o.game_name = d.game_name
            AND o.day BETWEEN d.day - 6 AND d.day) w,
          LATERAL (SELECT count(DISTINCT gamer_id) AS n FROM days o WHERE o.game_name = d.game_name
            AND o.day BETWEEN d.day - 29 AND d.day) m""",
    "kpi_retention": """
        WITH latest AS (SELECT max(day) AS day FROM e),
        back AS (
          SELECT first, f.game_name, f.gamer_id, bool_or(d.day = first + 1) AS r1, bool_or(d.day = first + 7) AS r7,
            bool_or(d.day = first + 30) AS r30
          FROM firsts f JOIN days d USING (game_name, gamer_id) GROUP BY ALL),
        sums AS (
          SELECT first, game_name, count(*) AS n, count_if(r1) AS r1, count_if(r7) AS r7, count_if(r30) AS r30
          FROM back GROUP BY ALL),
        counts AS (
          SELECT first, game_name, n, CASE WHEN first + 1 <= day THEN r1 END AS c1,
            CASE WHEN first + 7 <= day THEN r7 END AS c7, CASE WHEN first + 30 <= day THEN r30 END AS c30
          FROM sums CROSS JOIN latest)
        SELECT first, game_name, n, c1, c7, c30, c1 / n, c7 / n, c30 / n, 0 FROM counts""",
    "kpi_daily": """
        WITH s AS (
          SELECT day, game_name, gamer_id, session_id, epoch(max(moment) - min(moment)) AS seconds
          FROM e WHERE session_id IS NOT NULL GROUP BY ALL),
        sessions AS (
          SELECT day, game_name, count(*) AS n, quantile_cont(seconds, 0.5) AS p50, quantile_cont(seconds, 0.9) AS p90,
            quantile_cont(seconds, 0.99) AS p99
          FROM s GROUP BY ALL),
        d AS (
          SELECT day, game_name, count(*) AS events, count(*) FILTER (WHERE event_name = 'purchase') AS purchases,
            coalesce(sum(TRY_CAST(amount AS DECIMAL(18, 6))), 0) AS bookings, count(DISTINCT gamer_id) AS active,
            count(DISTINCT gamer_id) FILTER (WHERE event_name = 'purchase') AS payers
          FROM e GROUP BY ALL)
        SELECT day, game_name, events, purchases, bookings, active, payers, payers / nullif(active, 0),
          CAST(bookings AS DOUBLE) / nullif(active, 0), CAST(bookings AS DOUBLE) / nullif(payers, 0), 0,
          coalesce(n, 0), p50, p90, p99, 0
        FROM d LEFT JOIN sessions USING (day, game_name)""",
}


def expected_kpis(events: Sequence[Event]) -> dict[str, Rows]:
    """The rows that each table must have after these events, sorted."""
    with duckdb.connect() as connection:
        rows = as_rows(events)
        connection.register("silver", rows.cast(without_zones(rows.schema)))
        connection.execute(_EVENTS)
        return {name: in_order(connection.execute(sql).fetchall()) for name, sql in EXPECTED.items()}


def in_order(rows: Rows) -> Rows:
    """Rows that can be compared: sorted, floating-point numbers rounded, times without a zone."""
    return sorted((tuple(map(_plain, row)) for row in rows), key=repr)


def _plain(value: object) -> object:
    if isinstance(value, float):
        return round(value, 9)
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
