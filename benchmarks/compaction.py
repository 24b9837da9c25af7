"""Measures compaction of small files against Spark's OPTIMIZE: `python -m benchmarks.compaction`.

Two lakehouses have the same tables, with many small files of one day. One is compacted by the tasks of one Spark job,
as the compaction job does, the other by an OPTIMIZE for each table, four at a time. Then their rows are compared.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from benchmarks.commits import append
from benchmarks.goals import Goal, ratio
from benchmarks.harness import Benchmark, Run, alternate, main, option
from benchmarks.machine import SPARK_JARS
from benchmarks.results import BenchmarkError, Measurement, Values
from benchmarks.stopwatch import seconds_of
from benchmarks.traffic import CONTRACTS
from gamelake.contract.games import load_games
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.maintenance.compaction_run import CompactionRun, CompactionScope, compact_table
from gamelake.model.naming import game_table
from gamelake.objects.store import Location, Store
from gamelake.session import own_session

_PART, _OURS, _PEER = "compaction of all tables", "compaction", "OPTIMIZE, four at a time"
_PEERS_AT_ONCE = 4
_OPTIMIZE = "spark.databricks.delta.optimize"
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class CompactionSizes:
    """Options of the benchmark."""

    tables: int = option(30, "tables, and one more for the warm-up")
    files: int = option(1_000, "small files of each table")
    rows: int = option(100, "rows of each file")


def measure(run: Run[CompactionSizes]) -> Iterator[Measurement]:
    """Compact two lakehouses with the same tables.

    Raises:
        BenchmarkError: their rows differ.
    """
    names = names_of(run.settings)
    ours, peers = (Store(Location(uri=(run.folder / name).as_uri())) for name in ("ours", "peers"))
    for store in (ours, peers):
        fill(store, run.settings)
    with own_session("compaction", ours.location, SPARK_JARS) as spark:
        # The first table warms the JVM up for both.
        ways = {
            _OURS: lambda number: _seconds(lambda: _by_us(spark, ours, names[1:] if number else names[:1])),
            _PEER: lambda number: {
                "s": seconds_of(lambda: _by_spark(spark, peers, names[1:] if number else names[:1]))
            },
        }
        yield from alternate(_PART, ways, 1, run.emit)
    if different := [name for name in names if _sum(ours, name) != _sum(peers, name)]:
        raise BenchmarkError(f"the rows of {different} differ after compaction")


def _seconds(work: Callable[[], None]) -> Values:
    return {"s": seconds_of(work)}


def names_of(sizes: CompactionSizes) -> list[str]:
    """The tables; the first one is for the warm-up."""
    return [game_table(f"game_{number:02d}") for number in range(sizes.tables + 1)]


def fill(store: Store, sizes: CompactionSizes) -> None:
    """Create the tables, with rows of a past day."""
    day = datetime.now(UTC).date() - timedelta(days=2)
    for name in names_of(sizes):
        append(store, name, [(_rows(day, number, sizes.rows), str(day)) for number in range(sizes.files)])


def _rows(day: date, number: int, rows: int) -> pa.Table:
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(seconds=number)
    columns = {
        "event_id": [f"{number:08d}-{row:06d}" for row in range(rows)],
        "event_name": ["level_completed", "purchase"] * (rows // 2) + ["session_start"] * (rows % 2),
        "event_time": [moment] * rows,
        "gamer_id": [f"player-{row * 7919 % 1_000:04d}" for row in range(rows)],
    }
    arrays = [pa.array(columns.get(field.name, [None] * rows), field.type) for field in COMMON_SCHEMA]
    return pa.Table.from_arrays(arrays, schema=COMMON_SCHEMA)


def _by_us(spark: SparkSession, store: Store, names: list[str]) -> None:
    contract = load_games(CONTRACTS / "games.yaml")
    due = CompactionRun(store, contract, CompactionScope.DAILY, datetime.now(UTC).date()).due(names)
    spark.sparkContext.parallelize(due, len(due)).map(compact_table).collect()


def _by_spark(spark: SparkSession, store: Store, names: list[str]) -> None:
    spark.conf.set(f"{_OPTIMIZE}.maxFileSize", str(128 * _MIB))
    spark.conf.set(f"{_OPTIMIZE}.minFileSize", str(96 * _MIB))
    with ThreadPoolExecutor(_PEERS_AT_ONCE) as pool:
        list(pool.map(lambda name: spark.sql(f"OPTIMIZE delta.`{store.location.child(name)}`").collect(), names))


def _sum(store: Store, table: str) -> tuple[int, int, int]:
    """Number of files, of rows, and of distinct event ids."""
    handle = DeltaTable(store.location.child(table))
    ids = handle.to_pyarrow_table(columns=["event_id"])["event_id"]
    return len(handle.file_uris()), len(ids), len(pc.unique(ids))


BENCHMARK = Benchmark(
    name="compaction",
    measures="Measure compaction of small files against Spark's OPTIMIZE.",
    settings=CompactionSizes(),
    quick=CompactionSizes(tables=2, files=50),
    measure=measure,
    goals=(Goal("OPTIMIZE: seconds, relative to compaction", (5,), ratio(_PART, "s", _PEER, _OURS)),),
    runs_spark=True,
)


if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
