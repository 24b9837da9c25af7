"""Compacts small files of tables while the streams append; no row changes.

A daily run compacts up to each game's target file size, a weekly run up to 1 GiB. A small run needs no Spark. A larger
one is a Spark job with a task for each table; tables whose files exceed the memory of a task take Spark's OPTIMIZE.
With --no-spark this process compacts what fits into GAMELAKE_COMPACT_HERE_MIB, and the result lists the skipped files
with the command that compacts them. Prints one JSON document. Settings come from GAMELAKE_* variables
(docs/settings.md). Exits with 1 if a table could not be compacted; the others are.
"""

import argparse
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec
from pyspark.sql import SparkSession

from gamelake.command import command_parser, number, one_of, print_result
from gamelake.contract.games import load_games
from gamelake.delta.rewrites import maintenance_lease
from gamelake.maintenance.compaction import Compacted
from gamelake.maintenance.compaction_run import (
    CompactionEngine,
    CompactionRun,
    CompactionScope,
    DueTable,
    NotCompacted,
    compact_locally,
    compact_table,
    is_small,
    pending_locally,
    planned_compaction,
    skipped_by,
)
from gamelake.model.choices import allowed
from gamelake.model.errors import SettingsError
from gamelake.model.logs import event_logger
from gamelake.objects.settings import TableSettings
from gamelake.objects.store import Store
from gamelake.program import FAILED, OK, run
from gamelake.session import own_session

log = event_logger("compact")

_LONGEST_REST = 100
_OPTIMIZE = "spark.databricks.delta.optimize"


def main() -> int:
    """Compact, or print the dry run."""
    arguments = _arguments()
    settings = TableSettings.from_env()
    compaction_run = CompactionRun(
        store=Store(settings.lakehouse.location),
        contract=load_games(settings.games_file),
        scope=CompactionScope(arguments.scope),
        today=datetime.now(UTC).date(),
        kill=settings.kill,
    )
    most_bytes = settings.local_compaction_bytes
    if unknown := sorted(set(arguments.tables) - set(compaction_run.tables())):
        tables = allowed(compaction_run.tables(), unknown[0])
        raise SettingsError(f"'{unknown[0]}' is not a table that compaction covers; these are: {tables}")
    if arguments.no_spark and arguments.dry_run:
        return _print(list(pending_locally(compaction_run, most_bytes, arguments.tables)))
    due = (compaction_run.here(most_bytes) if arguments.no_spark else compaction_run).due(arguments.tables)
    is_local = arguments.no_spark or is_small(due, most_bytes)
    if arguments.dry_run:
        return _print([planned_compaction(each, CompactionEngine.LOCAL if is_local else each.engine) for each in due])
    if is_local:
        done = compact_locally(due, arguments.rest)
        return _print([*done, *(skipped_by(compaction_run, arguments.tables) if arguments.no_spark else ())])
    sessions = partial(own_session, "compact", settings.lakehouse.location, settings.spark_jars)
    with sessions() as spark:
        results = compact_with_spark(spark, due)
    return _print(results)


def compact_with_spark(spark: SparkSession, due: Sequence[DueTable]) -> list[Compacted | NotCompacted]:
    """Compact all tables, those that fit into one task first."""
    small = [each for each in due if each.engine is CompactionEngine.TASK]
    big = [each for each in due if each.engine is CompactionEngine.OPTIMIZE]
    results = spark.sparkContext.parallelize(small, len(small)).map(compact_table).collect() if small else []
    for each in big:
        log.info("optimize_started", table=each.compaction.table)
        results.append(optimize(spark, each))
    return results


def optimize(spark: SparkSession, due: DueTable) -> Compacted:
    """Compact one table with Spark's OPTIMIZE."""
    compaction, started = due.compaction, time.perf_counter()
    target = compaction.rule.target_bytes
    spark.conf.set(f"{_OPTIMIZE}.maxFileSize", str(target))
    spark.conf.set(f"{_OPTIMIZE}.minFileSize", str(target * 3 // 4))
    store = Store(compaction.location)
    with maintenance_lease(store, compaction.table):
        path = compaction.location.child(compaction.table)
        metrics = spark.sql(f"OPTIMIZE delta.`{path}`").select("metrics.*").collect()[0]
    return Compacted(
        table=compaction.table,
        partitions=metrics["partitionsOptimized"],
        files_before=metrics["numFilesRemoved"],
        files_after=metrics["numFilesAdded"],
        bytes_before=metrics["filesRemoved"]["totalSize"],
        bytes_after=metrics["filesAdded"]["totalSize"],
        seconds=time.perf_counter() - started,
    )


def _arguments() -> argparse.Namespace:
    parser = command_parser(__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as silver/kart_rumble_events; default: all")
    parser.add_argument(
        "--scope", type=one_of(CompactionScope), default=CompactionScope.DAILY, help="default: %(default)s"
    )
    parser.add_argument("--no-spark", action="store_true", help="compact what fits into the memory of this process")
    parser.add_argument(
        "--rest",
        type=number(0, _LONGEST_REST),
        default=0.0,
        metavar="TIMES",
        help="without Spark: pause after each table, as a multiple of the time that it took; default: %(default)s",
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be compacted, and change nothing")
    return parser.parse_args()


def _print(results: Sequence[msgspec.Struct]) -> int:
    print_result(results)
    return FAILED if any(isinstance(each, NotCompacted) for each in results) else OK


if __name__ == "__main__":
    run(main)
