"""Refreshes of the games' own tables, against Spark's MERGE, and of one table that grows a hundredfold."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from benchmarks.charts import line_chart
from benchmarks.documents import Report, circumstances, goals_table
from benchmarks.goals import Figure, Goal, figure_of, ratio
from benchmarks.gold import spark_merge
from benchmarks.gold.silver import GrowingSilverTable
from benchmarks.harness import Benchmark, Run, alternate, option
from benchmarks.machine import SPARK_JARS
from benchmarks.results import BenchmarkError, Measurement, Results, Values
from benchmarks.stopwatch import seconds_of
from gamelake.contract.aggregates import AggregateSpec
from gamelake.contract.games import GamesContract
from gamelake.objects.store import Location
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.definition import define
from gamelake.serving.gold.refresh import GoldRefresh, Refreshed, RefreshOutcome
from gamelake.serving.gold.runner import attempt
from gamelake.session import spark_session
from tools.embedded.service import REPOSITORY

ALL_TABLES, ONE_TABLE = "refresh of all tables", "refresh of one table"
OURS, MERGE = "gold", "Spark's MERGE, four at a time"
HISTORY, PLAYERS = "history", "players"
_DAY = "2026-11-{:02d}"


@dataclass(frozen=True, slots=True)
class GoldSizes:
    """Options of the benchmark."""

    tables: int = option(30, "tables of games")
    players: int = option(20_000, "players of each table")
    new_rows: int = option(2_000_000, "new rows of all tables, before each refresh")
    rounds: int = option(3, "refreshes of all tables")
    factors: tuple[int, ...] = option((1, 3, 10, 30, 100), "how many times a table grows")
    changes: int = option(5, "refreshes of each size")
    day_players: tuple[int, ...] = option((10_000, 100_000, 1_000_000), "players of a day, with --day")
    day_changed: int = option(10_000, "players with an event before each refresh, with --day")


QUICK = GoldSizes(
    tables=4, players=2_000, new_rows=40_000, rounds=1, factors=(1, 10), changes=2, day_players=(1_000, 10_000),
    day_changed=1_000,
)  # fmt: skip


def contract() -> GamesContract:
    """Return the games with their aggregates."""
    return load_gold(REPOSITORY / "contracts" / "games.yaml")


def measure(run: Run[GoldSizes]) -> Iterator[Measurement]:
    """Measure both parts; the one that needs no Spark comes first.

    Raises:
        BenchmarkError: a refresh failed, or the results of the two approaches differ.
    """
    (spec,) = (each for each in contract().aggregates if each.name == "player_agg")
    yield from _grow(run, spec)
    spark = spark_session("gold", Location(uri="file:///"), SPARK_JARS)
    # For MERGE: with the default of 200, the overhead of its tasks would dominate.
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    try:
        yield from _race(run, spark, spec)
    finally:
        spark.stop()


def _race(run: Run[GoldSizes], spark: SparkSession, spec: AggregateSpec) -> Iterator[Measurement]:
    """Run both approaches alternately over the same new rows, and compare their results at the end."""
    sizes = run.settings
    games = [f"game_{number:02d}" for number in range(sizes.tables)]
    share = sizes.new_rows // sizes.tables
    lake = Location(uri=(run.folder / "race").as_uri())
    silver = [GrowingSilverTable(lake, f"silver/{game}_events", sizes.players, seed) for seed, game in enumerate(games)]
    refreshes = [GoldRefresh(lake, f"silver/{game}_events", spec.table(game), define(spec)) for game in games]
    days = {"written": 0}

    def append() -> None:
        days["written"] += 1
        for each in silver:
            each.append(share)

    def timed(number: int, work: Callable[[], None]) -> Values:
        if days["written"] < number + 2:
            append()
        return {"s": round(seconds_of(work), 3)}

    append()
    _refresh_all(spark, refreshes, RefreshOutcome.REBUILT)
    for game in games:
        spark_merge.make(spark, lake, game)
    ways = {
        OURS: lambda number: timed(number, partial(_refresh_all, spark, refreshes, RefreshOutcome.MERGED)),
        MERGE: lambda number: timed(
            number, lambda: spark_merge.merge_all(spark, lake, games, _DAY.format(days["written"]))
        ),
    }
    yield from alternate(ALL_TABLES, ways, sizes.rounds, run.emit)
    _compare(lake, games, spec)


def _grow(run: Run[GoldSizes], spec: AggregateSpec) -> Iterator[Measurement]:
    """Measure the same change to one table with a larger history or more players."""
    sizes = run.settings
    share = sizes.new_rows // sizes.tables
    for grown in (HISTORY, PLAYERS):
        for factor in sizes.factors:
            players = sizes.players * (factor if grown == PLAYERS else 1)
            with TemporaryDirectory(dir=run.folder) as folder:
                lake = Location(uri=Path(folder).as_uri())
                silver = GrowingSilverTable(lake, "silver/game_events", players, factor)
                for _ in range(min(factor, 10)):
                    silver.append(share * factor // min(factor, 10))
                refresh = GoldRefresh(lake, "silver/game_events", spec.table("game"), define(spec), threads=2)
                refresh()
                done = [_changed(silver, refresh, share) for _ in range(sizes.changes)]
            subject = _times_the(grown, factor)
            run.emit(f"{subject}: {done[-1].seconds:.2f} s, {done[-1].rows_written:,} rows written")
            for number, each in enumerate(done, start=1):
                values = {"s": round(each.seconds, 3), "rows written": each.rows_written, "players": players}
                values["silver rows"], values["times"] = share * factor, factor
                yield Measurement(part=ONE_TABLE, subject=subject, round=number, values=values)


def _times_the(grown: str, factor: int) -> str:
    return f"{factor} times the {grown}"


def _changed(silver: GrowingSilverTable, refresh: GoldRefresh, rows: int) -> Refreshed:
    silver.append(rows)
    return refresh()


def _refresh_all(spark: SparkSession, refreshes: Sequence[GoldRefresh], wanted: RefreshOutcome) -> None:
    """As the job does it."""
    for result in spark.sparkContext.parallelize(refreshes, len(refreshes)).map(attempt).collect():
        if not isinstance(result, Refreshed) or result.outcome is not wanted:
            raise BenchmarkError(f"a refresh of gold ended with {result}")


def _compare(lake: Location, games: Sequence[str], spec: AggregateSpec) -> None:
    for game in games:
        tables = [
            DeltaTable(place).to_pyarrow_table()
            for place in (lake.child(spec.table(game)), spark_merge.place(lake, game))
        ]
        ours, theirs = (table.select([*spec.group_by, *spec.columns]).sort_by("gamer_id") for table in tables)
        if ours.cast(theirs.schema).combine_chunks() != theirs.combine_chunks():
            raise BenchmarkError(f"the results of the two approaches differ for {game}")


def _points(results: Results, grown: str) -> dict[float, float]:
    """The median seconds by how many times the table has grown."""
    names = [name for name in results.subjects(ONE_TABLE) if name.endswith(grown)]
    factors = [results.values(ONE_TABLE, name, "times")[0] for name in names]
    return {
        factor: float(np.median(results.values(ONE_TABLE, name, "s")))
        for factor, name in zip(factors, names, strict=True)
    }


def _slope(grown: str) -> Figure:
    """Exponent of the table's size in the time of a refresh; least squares over logarithms."""

    def values(results: Results) -> list[float]:
        points = _points(results, grown)
        return [float(np.polyfit(np.log(list(points)), np.log(list(points.values())), 1)[0])] if points else []

    return values


def _draw(results: Results, file: Path) -> None:
    lines = {f"{grown}: slope {_slope(grown)(results)[0]:.2f}": _points(results, grown) for grown in (HISTORY, PLAYERS)}
    line_chart(file, "New rows into one gold table", ("times the table", "seconds of a refresh"), lines, "log")


GOALS = (
    Goal("refresh of all tables", (10,), figure_of(ALL_TABLES, OURS, "s"), " s", at_most=True),
    Goal("Spark's MERGE: seconds, relative to it", (10,), ratio(ALL_TABLES, "s", MERGE, OURS)),
    *(
        Goal(f"slope of the seconds from 1 to 100 times the {grown}", (0.1,), _slope(grown), at_most=True)
        for grown in (HISTORY, PLAYERS)
    ),
)

BENCHMARK = Benchmark(
    name="gold",
    measures="Measure refreshes of gold tables; --day: only those of all games, by the players of the day.",
    settings=GoldSizes(),
    quick=QUICK,
    measure=measure,
    goals=GOALS,
    runs_spark=True,
    report=Report(
        page=(
            circumstances(
                "tables on the local disk; both approaches alternately in one Spark session, with equal results"
            ),
            goals_table(GOALS),
        ),
        charts={"gold.svg": _draw},
    ),
)
