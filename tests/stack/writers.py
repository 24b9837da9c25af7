"""Appends single rows to one table, by Spark, by delta-rs or as the fan-out does: `python -m tests.stack.writers -h`.

Says `ready` once it is warm, starts when a line comes in, and says how many commits it made, for each of which the
engine reported success.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from gamelake.lake.appends import BatchTransaction
from gamelake.lake.store import Location, Store
from gamelake.lake.tables import DeltaTables
from gamelake.session import spark_session
from gamelake.settings import LakehouseSettings
from tests.stack.rows import SCHEMA, entry_of, write_row

JARS = Path(__file__).parents[2] / "build/jars/spark"
TABLE = "contested"
_NO_LIMIT = 10_000

Append = Callable[[int], None]


class Way(StrEnum):
    """How a writer commits."""

    SPARK = "spark"
    SPARK_DEFAULT = "spark_default"  # with the log store that Delta chooses for S3 if nobody says otherwise
    DELTA_RS = "delta_rs"
    FAN_OUT = "fan_out"


@contextmanager
def appending(way: Way, lakehouse: Location, name: str) -> Iterator[Append]:
    """A function that appends a row with a number."""
    if way is Way.FAN_OUT:
        with DeltaTables(lakehouse) as tables:
            yield lambda number: _append_as_the_fan_out(tables, lakehouse, name, number)
    elif way is Way.DELTA_RS:
        yield lambda number: _append_by_delta_rs(lakehouse, name, number)
    else:
        yield from _appending_by_spark(way, lakehouse, name)


def _append_as_the_fan_out(tables: DeltaTables, lakehouse: Location, name: str, number: int) -> None:
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


def _appending_by_spark(way: Way, lakehouse: Location, name: str) -> Iterator[Append]:
    spark = spark_session(name, lakehouse, JARS)
    table = lakehouse.child(TABLE)
    if way is Way.SPARK_DEFAULT:
        # A third name of the same store, under which nobody has told Delta how to commit.
        spark.sparkContext._jsc.hadoopConfiguration().set(  # noqa: SLF001 # no other way
            "fs.s3n.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem"
        )
        table = table.replace("s3://", "s3n://", 1)

    def append(number: int) -> None:
        row = spark.range(number, number + 1, 1, 1).selectExpr(f"'{name}' AS writer", "id AS number")
        row.write.format("delta").mode("append").save(table)

    yield append
    spark.stop()


def main() -> None:
    """Append, and pause for a random time before each row, so that slow engines meet fast ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", type=Way, choices=list(Way))
    parser.add_argument("name")
    parser.add_argument("commits", type=int)
    parser.add_argument("--longest-pause", type=float, default=0, help="seconds")
    arguments = parser.parse_args()
    lakehouse = LakehouseSettings.from_env(os.environ).location
    with appending(arguments.way, lakehouse, arguments.name) as append:
        # The first commit of a session compiles what the others use.
        append(0)
        print("ready", flush=True)  # noqa: T201 # its parent reads it
        sys.stdin.readline()
        for number in range(1, arguments.commits):
            time.sleep(random.uniform(0, arguments.longest_pause))
            append(number)
        print("committed", arguments.commits, flush=True)  # noqa: T201 # its parent reads it


if __name__ == "__main__":
    main()
