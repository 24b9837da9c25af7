"""One run: rounds of both approaches over thirty tables, then one table that grows a hundredfold."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from benchmarks.gold import spark_merge
from benchmarks.gold.results import RefreshComparison, Refreshes
from benchmarks.gold.silver import GrowingSilverTable
from gamelake.model.aggregates import AggregateSpec
from gamelake.serving.gold.definition import define
from gamelake.serving.gold.refresh import GoldRefresh, Refreshed, RefreshOutcome
from gamelake.serving.gold.runner import attempt
from gamelake.storage.store import Location

HISTORY, PLAYERS = "history", "players"
_DAY = "2026-11-{:02d}"


class GoldBenchmarkError(Exception):
    """A refresh failed, or the results of the two approaches differ."""


@dataclass(frozen=True, slots=True)
class GoldSizes:
    """The sizes of a run."""

    tables: int = 30
    players: int = 20_000
    new_rows: int = 2_000_000
    rounds: int = 3
    factors: Sequence[int] = (1, 3, 10, 30, 100)
    changes: int = 5


def race(
    spark: SparkSession, sizes: GoldSizes, spec: AggregateSpec, emit: Callable[[str], None]
) -> Iterator[RefreshComparison]:
    """Run both approaches alternately; the first round is a warm-up and is not returned.

    Raises:
        GoldBenchmarkError: a refresh failed, or the results differ.
    """
    games = [f"game_{number:02d}" for number in range(sizes.tables)]
    share = sizes.new_rows // sizes.tables
    with TemporaryDirectory(dir=_folder()) as folder:
        lake = Location(uri=f"file://{folder}")
        silver = [
            GrowingSilverTable(lake, f"silver/{game}_events", sizes.players, seed) for seed, game in enumerate(games)
        ]
        refreshes = [GoldRefresh(lake, f"silver/{game}_events", spec.table(game), define(spec)) for game in games]
        for each in silver:
            each.append(share)
        _refresh_all(spark, refreshes, RefreshOutcome.REBUILT)
        for game in games:
            spark_merge.make(spark, lake, game)
        for number in range(sizes.rounds + 1):
            for each in silver:
                each.append(share)
            day = _DAY.format(number + 2)
            ways = [partial(_refresh_all, spark, refreshes, RefreshOutcome.MERGED)]
            ways.insert(number % 2, partial(spark_merge.merge_all, spark, lake, games, day))
            seconds = [_timed(way) for way in ways]
            found = RefreshComparison(round=number, ours=seconds[1 - number % 2], spark=seconds[number % 2])
            emit(f"round {number}: gold {found.ours:.1f} s, Spark's MERGE {found.spark:.1f} s")
            if number:
                yield found
        _compare(lake, games, spec)


def grow(sizes: GoldSizes, spec: AggregateSpec, emit: Callable[[str], None]) -> Iterator[Refreshes]:
    """Measure the same change to one table with a larger history or more players."""
    share = sizes.new_rows // sizes.tables
    for grown in (HISTORY, PLAYERS):
        for factor in sizes.factors:
            players = sizes.players * (factor if grown == PLAYERS else 1)
            with TemporaryDirectory(dir=_folder()) as folder:
                lake = Location(uri=f"file://{folder}")
                silver = GrowingSilverTable(lake, "silver/game_events", players, factor)
                for _ in range(min(factor, 10)):
                    silver.append(share * factor // min(factor, 10))
                refresh = GoldRefresh(lake, "silver/game_events", spec.table("game"), define(spec), threads=2)
                refresh()
                done = [_changed(silver, refresh, share) for _ in range(sizes.changes)]
            found = Refreshes(
                grown=grown,
                factor=factor,
                silver_rows=share * factor,
                players=players,
                seconds=tuple(each.seconds for each in done),
                rows_written=done[-1].rows_written,
            )
            emit(f"{factor} times the {grown}: {found.median:.2f} s, {found.rows_written:,} rows written")
            yield found


def _changed(silver: GrowingSilverTable, refresh: GoldRefresh, rows: int) -> Refreshed:
    silver.append(rows)
    return refresh()


def _refresh_all(spark: SparkSession, refreshes: Sequence[GoldRefresh], wanted: RefreshOutcome) -> None:
    """As the job does it."""
    for result in spark.sparkContext.parallelize(refreshes, len(refreshes)).map(attempt).collect():
        if not isinstance(result, Refreshed) or result.outcome is not wanted:
            raise GoldBenchmarkError(f"{result}")


def _timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _compare(lake: Location, games: Sequence[str], spec: AggregateSpec) -> None:
    for game in games:
        tables = [
            DeltaTable(place).to_pyarrow_table()
            for place in (lake.child(spec.table(game)), spark_merge.place(lake, game))
        ]
        ours, theirs = (table.select([*spec.group_by, *spec.columns]).sort_by("gamer_id") for table in tables)
        if ours.cast(theirs.schema).combine_chunks() != theirs.combine_chunks():
            raise GoldBenchmarkError(f"the results of the two approaches differ for {game}")


def _folder() -> Path:
    folder = Path(__file__).parents[2] / "build" / "benchmarks" / "gold"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
