"""Compares the row counts per hour of each game's table with those in silver/events."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from gamelake.delta.listing import games_of, has_log
from gamelake.model.naming import SILVER_EVENTS, game_table
from gamelake.objects.store import Store
from gamelake.quality.suites.hops import Hop

_HOUR = ("game_name", "hour")
_COORDINATES = ("kafka_partition", "kafka_offset")
_NAMED = 3
# A batch is in all tables within seconds, unless its job was killed.
_ATTEMPTS, _PAUSE_SECONDS = 3, 5.0


@dataclass(frozen=True, slots=True, order=True)
class HourDifference:
    """An hour (0 to 23, UTC) of a game with different row counts in the two tables."""

    game: str
    hour: int
    in_game: int
    in_all: int

    @property
    def text(self) -> str:
        """The difference as text."""
        return f"{self.game} {self.hour:02}:00: {self.in_game:,} and {self.in_all:,}"


@dataclass(frozen=True, slots=True)
class HourHops:
    """The hop from the games' tables to silver/events, for the events of one day."""

    store: Store
    spark: SparkSession
    day: date
    sleep: Callable[[float], None] = time.sleep

    def hops(self) -> Iterator[Hop]:
        """Compare the tables; differences are compared again, as running streams may cause them."""
        tables = [game_table(game) for game in games_of(self.store)]
        if not tables or not has_log(self.store, SILVER_EVENTS):
            return
        apart = self._apart(tables)
        for _ in range(_ATTEMPTS - 1):
            if not apart:
                break
            self.sleep(_PAUSE_SECONDS)
            apart = sorted(set(apart) & set(self._apart(tables)))
        yield Hop(
            "games_hours_are_in_silver_events",
            "each hour of each game has as many rows in its own table as in that of all games",
            sum(abs(each.in_game - each.in_all) for each in apart),
            self._detail(tables, apart) if apart else "",
        )

    def _apart(self, tables: list[str]) -> list[HourDifference]:
        here = self._of_games(tables).groupBy(*_HOUR).agg(sf.count("*").alias("in_game"))
        there = self._rows(SILVER_EVENTS).groupBy(*_HOUR).agg(sf.count("*").alias("in_all"))
        both = here.join(there, list(_HOUR), "full_outer").fillna(0, ["in_game", "in_all"])
        rows = both.where("in_game <> in_all").collect()
        return sorted(HourDifference(str(row[0]), int(row[1]), int(row[2]), int(row[3])) for row in rows)

    def _detail(self, tables: list[str], apart: list[HourDifference]) -> str:
        """The first differing hours, and coordinates of some rows that only one table has."""
        first = apart[0]
        here, there = (
            rows.where((sf.col("game_name") == first.game) & (sf.col("hour") == first.hour)).select(*_COORDINATES)
            for rows in (self._of_games(tables), self._rows(SILVER_EVENTS))
        )
        alone = here.exceptAll(there).unionAll(there.exceptAll(here)).orderBy(*_COORDINATES).limit(_NAMED).collect()
        named = ", ".join(f"{row[0]}:{row[1]}" for row in alone)
        hours = "; ".join(each.text for each in apart[:_NAMED])
        return f"{hours}, such as {named} (partition:offset)"

    def _of_games(self, tables: list[str]) -> DataFrame:
        return reduce(DataFrame.unionByName, map(self._rows, tables))

    def _rows(self, table: str) -> DataFrame:
        rows = self.spark.read.format("delta").load(self.store.location.child(table))
        rows = rows.where(sf.col("event_date") == sf.lit(self.day))
        return rows.select("game_name", sf.hour("event_time").alias("hour"), *_COORDINATES)
