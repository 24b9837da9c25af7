"""The facts that the streaming query would bring after all of some events, without a stream."""

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from gamelake.storage.sql_engine import without_zones
from tests.silver_events import Event, as_rows

_FACTS = """
WITH placed AS (SELECT *, least(event_time, ingest_time) AS moment FROM silver),
spread AS (
  SELECT *, 'hour' AS facet, platform AS a, app_version AS b FROM placed
  UNION ALL BY NAME SELECT *, 'session' AS facet, gamer_id AS a, session_id AS b FROM placed
  UNION ALL BY NAME SELECT *, 'arrival' AS facet, NULL AS a, NULL AS b FROM placed)
SELECT date_trunc('hour', moment) AS hour, facet, game_name, a, b, count(*) AS events,
  count(*) FILTER (WHERE event_name = 'purchase') AS purchases,
  CAST(coalesce(sum(TRY_CAST(amount AS DECIMAL(18, 6))), 0) AS DECIMAL(28, 6)) AS bookings,
  min(moment) AS first_event, max(moment) AS last_event
FROM spread GROUP BY ALL
"""


def facts_of(events: Sequence[Event]) -> pa.Table:
    """The facts, each with its count over all these events."""
    return facts_from(as_rows(events))


def facts_from(rows: pa.Table) -> pa.Table:
    """The facts of rows of silver."""
    with duckdb.connect() as connection:
        connection.register("silver", rows.cast(without_zones(rows.schema)))
        return connection.sql(_FACTS).to_arrow_table()
