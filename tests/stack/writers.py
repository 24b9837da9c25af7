"""Appends single rows to one table, by Spark, by delta-rs or as the fan-out does: `python -m tests.stack.writers -h`.

Says `ready` once it is warm, starts when a line comes in, and ends with the seconds of each commit, as JSON; for each
of them the engine has reported success.
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake
from pyspark.sql import SparkSession

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.tables import DeltaTables
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Location, Store
from gamelake.session import spark_session
from tests.stack.rows import SCHEMA, entry_of, write_row

JARS = Path(__file__).parents[2] / "build/jars/spark"
TABLE = "contested"
_NO_LIMIT = 10_000

Append = Callable[[str, int], None]


class Way(StrEnum):
    """The way in which a writer commits."""

    SPARK = "spark"
    SPARK_DEFAULT = "spark_default"  # with the log store that Delta chooses for S3 unless it is configured
    DELTA_RS = "delta_rs"
    FAN_OUT = "fan_out"


@contextmanager
def appending(way: Way, lakehouse: Location) -> Iterator[Append]:
    """A function that appends a row of a writer's name and a number."""
    if way is Way.FAN_OUT:
        with DeltaTables(lakehouse) as tables:
            yield lambda name, number: append_as_the_fan_out(tables, lakehouse, name, number)
    elif way is Way.DELTA_RS:
        yield lambda name, number: _append_by_delta_rs(lakehouse, name, number)
    else:
        spark = spark_session("writers", lakehouse, JARS)
        yield lambda name, number: append_by_spark(spark, way, lakehouse, name, number)
        spark.stop()


def append_as_the_fan_out(tables: DeltaTables, lakehouse: Location, name: str, number: int) -> None:
    """Append a row by the commit path of the ingest job."""
    file = write_row(Store(lakehouse), TABLE, name, number)
    tables.append(entry_of(TABLE, file), BatchTransaction(name, number))


def _append_by_delta_rs(lakehouse: Location, name: str, number: int) -> None:
    write_deltalake(
        lakehouse.child(TABLE),
        pa.table({"writer": [name], "number": [number]}, schema=SCHEMA),
        mode="append",
        storage_options=dict(lakehouse.options),
        commit_properties=CommitProperties(max_commit_retries=_NO_LIMIT),
    )


def append_by_spark(spark: SparkSession, way: Way, lakehouse: Location, name: str, number: int) -> None:
    """Append a row by Spark, which commits as its session or (`SPARK_DEFAULT`) Delta itself has it."""
    table = lakehouse.child(TABLE)
    if way is Way.SPARK_DEFAULT:
        # A third name of the same store, for which Delta has no configured log store.
        spark.sparkContext._jsc.hadoopConfiguration().set(  # noqa: SLF001 # no other way
            "fs.s3n.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem"
        )
        table = table.replace("s3://", "s3n://", 1)
    row = spark.range(number, number + 1, 1, 1).selectExpr(f"'{name}' AS writer", "id AS number")
    row.write.format("delta").mode("append").save(table)


def main() -> None:
    """Append, and pause for a random time before each row, so that slow engines meet fast ones."""
    arguments = _parser().parse_args()
    lakehouse = LakehouseSettings.from_env(os.environ).location
    names = [f"{arguments.name}-{number}" for number in range(arguments.loops)]
    with appending(arguments.way, lakehouse) as append:
        # The first commit of a session compiles what the others use.
        for name in names:
            append(name, 0)
        print("ready", flush=True)  # noqa: T201 # its parent reads it
        sys.stdin.readline()

        def loop(name: str) -> list[float]:
            return [_timed(append, name, number, arguments.longest_pause) for number in range(1, arguments.commits)]

        with ThreadPoolExecutor(len(names)) as pool:
            seconds = dict(zip(names, pool.map(loop, names), strict=True))
        print(json.dumps(seconds), flush=True)  # noqa: T201 # its parent reads it


def _timed(append: Append, name: str, number: int, longest_pause: float) -> float:
    time.sleep(random.uniform(0, longest_pause))
    started = time.perf_counter()
    append(name, number)
    return time.perf_counter() - started


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", type=Way, choices=list(Way))
    parser.add_argument("name", help="the writer's; its loops have numbers behind it")
    parser.add_argument("commits", type=int, help="of each loop, the one to become warm included")
    parser.add_argument("--loops", type=int, default=1, help="at once, in this process; default: %(default)s")
    parser.add_argument("--longest-pause", type=float, default=0, help="seconds; default: %(default)s")
    return parser


if __name__ == "__main__":
    main()
