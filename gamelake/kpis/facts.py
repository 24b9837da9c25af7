"""What the streaming query counts: silver's events as facts by hour, with a watermark, in one stateful aggregation.

Each event becomes three facts. Two are about what happened (in which game, platform and app version; in whose session)
and count until their hour is closed: when an event has been seen that is later than the hour's end by the watermark.
The third is about its arrival and counts always, so that what came too late is the difference, and never lost.
"""

from collections.abc import Mapping
from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 # the name that everybody gives it

from gamelake.kpis.definitions import ARRIVAL, HOUR, OCCURRED, SESSION

_WINDOW = "1 hour"
# A window that no watermark reaches: arrivals are never late, and their own watermark never holds the other one back.
_NEVER_CLOSED = "TIMESTAMP '9999-01-01 00:00:00'"
_FACETS = f"""array(
  named_struct('facet', '{HOUR}', 'a', platform, 'b', app_version),
  named_struct('facet', '{SESSION}', 'a', gamer_id, 'b', session_id))"""
_ARRIVALS = f"array(named_struct('facet', '{ARRIVAL}', 'a', CAST(NULL AS STRING), 'b', CAST(NULL AS STRING)))"
_MEASURES: Mapping[str, str] = {
    "events": "count(*)",
    "purchases": "count_if(event_name = 'purchase')",
    # A sum of floating-point numbers would depend on their order.
    "bookings": "coalesce(sum(CAST(amount AS DECIMAL(18, 6))), CAST(0 AS DECIMAL(28, 6)))",
    "first_event": "min(at)",
    "last_event": "max(at)",
}


def facts(events: DataFrame, watermark: timedelta) -> DataFrame:
    """The facts whose counts have changed, each with its count since its hour began; for output mode update."""
    placed = events.select(
        F.expr(OCCURRED).alias("at"),
        *("event_name", "game_name", "amount", "platform", "app_version", "gamer_id", "session_id"),
    )
    delay = f"{int(watermark.total_seconds())} seconds"
    happened = _spread(placed, "at", _FACETS).withWatermark("closes", delay)
    arrived = _spread(placed, _NEVER_CLOSED, _ARRIVALS).withWatermark("closes", "0 seconds")
    keys = ("hour", "facet", "game_name", "a", "b")
    measures = (F.expr(sql).alias(name) for name, sql in _MEASURES.items())
    counted = happened.unionByName(arrived).groupBy(F.window("closes", _WINDOW), *keys).agg(*measures)
    return counted.drop("window")


def _spread(placed: DataFrame, closes: str, facets: str) -> DataFrame:
    """Each event once for each facet, with the moment that its window is found by."""
    hour = F.date_trunc("hour", "at").alias("hour")
    return placed.select(
        F.expr(closes).alias("closes"), hour, "at", "event_name", "game_name", "amount", F.inline(F.expr(facets))
    )
