"""Packs small files into good ones, beside the streams that write them; no row changes.

The daily round packs up to each game's file size, the weekly one up to 1 GiB. A round of few bytes is packed in this
process. More is packed in the tasks of one Spark job, a table each; where a file would not fit the memory of a task, by
Spark's OPTIMIZE, one table after the other. With --here no Spark is started: files become as large as
GAMELAKE_COMPACT_HERE_MIB allows, and the result says what is left and which command packs it. Prints one JSON document.
Settings come from GAMELAKE_* variables (docs/settings.md). Ends with 1 if a table could not be packed; the others are.
"""

import argparse
import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec
from pyspark.sql import SparkSession

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
from gamelake.model.errors import SettingsError
from gamelake.model.games import load_games
from gamelake.program import FAILED, OK, run
from gamelake.session import own_session
from gamelake.storage.rewrites import maintenance_lease
from gamelake.storage.settings import TableSettings
from gamelake.storage.store import Store

log = logging.getLogger("compact")

_LONGEST_REST = 100
_OPTIMIZE = "spark.databricks.delta.optimize"


def main() -> int:
    """Pack, or say what would be packed."""
    arguments = _arguments()
    settings = TableSettings.from_env()
    of_all = CompactionRun(
        store=Store(settings.lakehouse.location),
        contract=load_games(settings.games_file),
        kind=CompactionScope(arguments.round),
        today=datetime.now(UTC).date(),
        kill=settings.kill,
    )
    most_bytes = settings.local_compaction_bytes
    if unknown := sorted(set(arguments.tables) - set(of_all.tables())):
        raise SettingsError(f"'{unknown[0]}' is no table that is packed; these are: {', '.join(of_all.tables())}")
    if arguments.here and arguments.dry_run:
        return _print(list(pending_locally(of_all, most_bytes, arguments.tables)))
    due = (of_all.here(most_bytes) if arguments.here else of_all).due(arguments.tables)
    is_here = arguments.here or is_small(due, most_bytes)
    if arguments.dry_run:
        return _print([planned_compaction(each, CompactionEngine.HERE if is_here else each.place) for each in due])
    if is_here:
        done = compact_locally(due, arguments.rest)
        return _print([*done, *(skipped_by(of_all, arguments.tables) if arguments.here else ())])
    sessions = partial(own_session, "compact", settings.lakehouse.location, settings.spark_jars)
    with sessions() as spark:
        results = packed(spark, due)
    return _print(results)


def packed(spark: SparkSession, due: Sequence[DueTable]) -> list[Compacted | NotCompacted]:
    """Pack all tables, those first that one task can."""
    small = [each for each in due if each.place is CompactionEngine.TASK]
    big = [each for each in due if each.place is CompactionEngine.OPTIMIZE]
    results = spark.sparkContext.parallelize(small, len(small)).map(compact_table).collect() if small else []
    for each in big:
        log.info("%s is packed by Spark", each.compaction.table)
        results.append(optimized(spark, each))
    return results


def optimized(spark: SparkSession, due: DueTable) -> Compacted:
    """Have Spark pack one table."""
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as silver/kart_rumble_events; default: all")
    parser.add_argument(
        "--round", choices=list(CompactionScope), default=CompactionScope.DAILY, help="default: %(default)s"
    )
    parser.add_argument("--here", action="store_true", help="start no Spark: pack what this process has the memory for")
    parser.add_argument(
        "--rest",
        type=_times,
        default=0.0,
        metavar="TIMES",
        help="rest so many times as long as a table took, where no Spark is started; default: %(default)s",
    )
    parser.add_argument("--dry-run", action="store_true", help="say exactly what would be packed, and change nothing")
    return parser.parse_args()


def _times(text: str) -> float:
    times = float(text)
    if not 0 <= times <= _LONGEST_REST:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {_LONGEST_REST}")
    return times


def _print(results: Sequence[msgspec.Struct]) -> int:
    print(msgspec.json.format(msgspec.json.encode(results)).decode())
    return FAILED if any(isinstance(each, NotCompacted) for each in results) else OK


if __name__ == "__main__":
    run(main)
