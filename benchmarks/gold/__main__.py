"""Measures refreshes of gold tables: `python -m benchmarks.gold`."""

import argparse
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.gold import report, suite
from benchmarks.gold.results import GoldResults, RefreshComparison, Refreshes, save
from benchmarks.machine import cpu_model, short_commit
from gamelake.model.errors import GamelakeError
from gamelake.model.games import load_games
from gamelake.session import spark_session
from gamelake.storage.store import Location
from tools.embedded.java import spark_environment
from tools.embedded.service import REPOSITORY

_RESULTS = REPOSITORY / "benchmarks" / "results"
_QUICK = suite.GoldSizes(tables=4, players=2_000, new_rows=40_000, rounds=1, factors=(1, 10), changes=2)


def main() -> int:
    """Measure; 1 if the benchmark failed."""
    arguments = _parser().parse_args()
    started, measured_at = time.monotonic(), datetime.now(UTC)
    os.environ |= spark_environment()
    sizes = _QUICK if arguments.quick else suite.GoldSizes()
    try:
        races, refreshes = _measured(
            sizes, lambda line: print(f"{time.monotonic() - started:6.0f} s  {line}", flush=True)
        )
    except (GamelakeError, suite.GoldBenchmarkError) as error:
        print(f"benchmarks.gold: {error}", file=sys.stderr)
        return 1
    results = GoldResults(
        measured_at=measured_at.isoformat(timespec="seconds"),
        commit=short_commit(REPOSITORY),
        cores=os.cpu_count() or 0,
        cpu_model=cpu_model(),
        tables=sizes.tables,
        players=sizes.players,
        new_rows=sizes.new_rows,
        races=races,
        refreshes=refreshes,
    )
    print(f"results are in {save(results, arguments.out)}")
    print(report.summary(results))
    if arguments.out == _RESULTS and not arguments.quick:
        report.write_report(results, REPOSITORY / "docs")
    return 0


def _measured(
    sizes: suite.GoldSizes, emit: Callable[[str], None]
) -> tuple[tuple[RefreshComparison, ...], tuple[Refreshes, ...]]:
    """Both parts; the one that needs no Spark comes first."""
    contract = load_games(REPOSITORY / "contracts" / "games.yaml")
    (spec,) = (each for each in contract.aggregates if each.name == "player_agg")
    refreshes = tuple(suite.grow(sizes, spec, emit))
    spark = spark_session("gold", Location(uri="file:///"), REPOSITORY / "build" / "jars" / "spark")
    # For MERGE: with the default of 200, the overhead of its tasks would dominate.
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    try:
        return tuple(suite.race(spark, sizes, spec, emit)), refreshes
    finally:
        spark.stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gold", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables, one round, no report: to try it")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder for the results; default: %(default)s")
    return parser


if __name__ == "__main__":
    sys.exit(main())
