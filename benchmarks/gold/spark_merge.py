"""The alternative to compare with: gold tables that are updated by Spark's MERGE from the new rows."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyspark.sql.functions as f
from pyspark.sql import DataFrame, SparkSession

from gamelake.objects.store import Location

THREADS = 4
_ADDED = ("session_count", "event_count", "bookings")


def merge_all(spark: SparkSession, lake: Location, games: Sequence[str], day: str) -> None:
    """Merge a day's events into each game's table, four at a time; more are not faster."""
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda game: merge(spark, lake, game, day), games))


def place(lake: Location, game: str) -> str:
    """The path of the game's table that MERGE updates."""
    return lake.child(f"by_spark/{game}_player_agg")


def merge(spark: SparkSession, lake: Location, game: str, day: str) -> None:
    """Merge a day's events into the table of a game."""
    events = spark.read.format("delta").load(lake.child(f"silver/{game}_events"))
    new = aggregated(events.where(f.col("event_date") == day))
    new.createOrReplaceTempView(f"new_{game}")
    sets = [
        "old.min_timestamp = least(old.min_timestamp, new.min_timestamp)",
        "old.max_timestamp = greatest(old.max_timestamp, new.max_timestamp)",
        *(f"old.{name} = coalesce(old.{name} + new.{name}, old.{name}, new.{name})" for name in _ADDED),
    ]
    spark.sql(
        f"MERGE INTO delta.`{place(lake, game)}` AS old USING new_{game} AS new ON old.gamer_id = new.gamer_id "
        f"WHEN MATCHED THEN UPDATE SET {', '.join(sets)} WHEN NOT MATCHED THEN INSERT *"
    )


def make(spark: SparkSession, lake: Location, game: str) -> None:
    """Make a game's table from all of its events."""
    events = spark.read.format("delta").load(lake.child(f"silver/{game}_events"))
    aggregated(events).write.format("delta").mode("overwrite").save(place(lake, game))


def aggregated(events: DataFrame) -> DataFrame:
    """The aggregate `player_agg` of the games contract."""
    return events.groupBy("gamer_id").agg(
        f.count_if(f.col("event_name") == "session_start").alias("session_count"),
        f.count("*").alias("event_count"),
        f.min("event_time").alias("min_timestamp"),
        f.max("event_time").alias("max_timestamp"),
        f.sum(f.col("amount").cast("decimal(18,6)")).cast("decimal(38,6)").alias("bookings"),
    )
