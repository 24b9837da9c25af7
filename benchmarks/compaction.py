"""Measures compaction of small files against Spark's OPTIMIZE: `python -m benchmarks.compaction`.

Two lakehouses have the same tables, with many small files of one day. One is compacted by the tasks of one Spark job,
as the compaction job does, the other by an OPTIMIZE for each table, four at a time. Then their rows are compared.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from benchmarks.traffic import CONTRACTS
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.maintenance.compaction_run import CompactionRun, CompactionScope, compact_table
from gamelake.model.games import load_games
from gamelake.model.naming import game_table
from gamelake.session import own_session
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.data_files import DataFile, encode_parquet, new_file_name
from gamelake.storage.manifests import TableFiles
from gamelake.storage.store import Location, Store
from gamelake.storage.tables import DeltaTables, delta_schema_json
from tools.embedded.java import spark_environment
from tools.embedded.service import REPOSITORY

_PEERS_AT_ONCE = 4
_OPTIMIZE = "spark.databricks.delta.optimize"
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class CompactionSizes:
    """Number of tables, of files per table, and of rows per file."""

    tables: int
    files: int
    rows: int


def main() -> int:
    """Measure, and print the results as JSON; 1 if the rows differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compaction", description=__doc__)
    parser.add_argument("--tables", type=int, default=30, help="default: %(default)s")
    parser.add_argument("--files", type=int, default=1_000, help="small files of each table; default: %(default)s")
    parser.add_argument("--rows", type=int, default=100, help="rows of each file; default: %(default)s")
    arguments = parser.parse_args()
    os.environ |= spark_environment()
    sizes = CompactionSizes(arguments.tables, arguments.files, arguments.rows)
    with tempfile.TemporaryDirectory(prefix="gamelake-compaction-") as folder:
        ours, peers = (Store(Location(uri=(Path(folder) / name).as_uri())) for name in ("ours", "peers"))
        for store in (ours, peers):
            fill(store, sizes)
        with own_session("compaction", ours.location, REPOSITORY / "build" / "jars" / "spark") as spark:
            # One table first, as the warm-up of the JVM for both.
            _by_spark(spark, peers, [names_of(sizes)[0]])
            _by_us(spark, ours, [names_of(sizes)[0]])
            ours_seconds = _timed(lambda: _by_us(spark, ours, names_of(sizes)[1:]))
            peers_seconds = _timed(lambda: _by_spark(spark, peers, names_of(sizes)[1:]))
        same = all(_sum(ours, name) == _sum(peers, name) for name in names_of(sizes))
    found = {"ours": round(ours_seconds, 1), "optimize": round(peers_seconds, 1), "same_rows": same}
    print(json.dumps({**found, "times": round(peers_seconds / ours_seconds, 1)}))
    return 0 if same else 1


def names_of(sizes: CompactionSizes) -> list[str]:
    """The tables; the first one is for the warm-up."""
    return [game_table(f"game_{number:02d}") for number in range(sizes.tables + 1)]


def fill(store: Store, sizes: CompactionSizes) -> None:
    """Create the tables, with rows of a past day."""
    day = datetime.now(UTC).date() - timedelta(days=2)
    with DeltaTables(store.location) as tables:
        for name in names_of(sizes):
            files = tuple(_file(store, name, day, number, sizes.rows) for number in range(sizes.files))
            schema = delta_schema_json(COMMON_SCHEMA.append(pa.field("event_date", pa.date32())))
            entry = TableFiles(table=name, partition_by=("event_date",), schema=schema, files=files)
            tables.append(entry, BatchTransaction("bench", 0))


def _file(store: Store, table: str, day: date, number: int, rows: int) -> DataFile:
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(seconds=number)
    columns = {
        "event_id": [f"{number:08d}-{row:06d}" for row in range(rows)],
        "event_name": ["level_completed", "purchase"] * (rows // 2) + ["session_start"] * (rows % 2),
        "event_time": [moment] * rows,
        "gamer_id": [f"player-{row * 7919 % 1_000:04d}" for row in range(rows)],
    }
    arrays = [pa.array(columns.get(field.name, [None] * rows), field.type) for field in COMMON_SCHEMA]
    content, statistics = encode_parquet(pa.Table.from_arrays(arrays, schema=COMMON_SCHEMA), frozenset({"event_id"}))
    path = new_file_name(f"event_date={day}")
    store.put(f"{table}/{path}", content.to_pybytes())
    partition: dict[str, str | None] = {"event_date": str(day)}
    return DataFile(path=path, size=content.size, rows=rows, partition=partition, statistics=statistics)


def _by_us(spark: SparkSession, store: Store, names: list[str]) -> None:
    contract = load_games(CONTRACTS / "games.yaml")
    due = CompactionRun(store, contract, CompactionScope.DAILY, datetime.now(UTC).date()).due(names)
    spark.sparkContext.parallelize(due, len(due)).map(compact_table).collect()


def _by_spark(spark: SparkSession, store: Store, names: list[str]) -> None:
    spark.conf.set(f"{_OPTIMIZE}.maxFileSize", str(128 * _MIB))
    spark.conf.set(f"{_OPTIMIZE}.minFileSize", str(96 * _MIB))
    with ThreadPoolExecutor(_PEERS_AT_ONCE) as pool:
        list(pool.map(lambda name: spark.sql(f"OPTIMIZE delta.`{store.location.child(name)}`").collect(), names))


def _timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _sum(store: Store, table: str) -> tuple[int, int, int]:
    """Number of files, of rows, and of distinct event ids."""
    handle = DeltaTable(store.location.child(table))
    ids = handle.to_pyarrow_table(columns=["event_id"])["event_id"]
    return len(handle.file_uris()), len(ids), len(pc.unique(ids))


if __name__ == "__main__":
    sys.exit(main())
