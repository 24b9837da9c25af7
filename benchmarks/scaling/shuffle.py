"""Measures batches of many tasks with and without a shuffle of small files: `python -m benchmarks.scaling.shuffle`.

The streaming driver's own code decides batches of records of many games and days, by Spark in this process and on the
local disk; each task has records of all tables. With and without a shuffle have their turns in each round. Nothing is
committed.
"""

import argparse
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TypeAlias

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.spark import FrameRecords, warm_session
from gamelake.model.games import GamesContract, GameSpec, UnlistedGames
from gamelake.model.naming import shuffle_folder
from gamelake.storage.tables import DeltaTables
from gamelake.streaming.decision import Decision
from tests.spark.records import NOW, RECORD_TYPES, KnownSchemas, PlannedRecord, planned

RecordRow: TypeAlias = tuple[bytes, bytes, int, int, datetime, None]


@dataclass(frozen=True, slots=True)
class WideBatch:
    """The records of a batch: some rows for each task, table and day."""

    tasks: int
    tables: int
    days: int
    rows: int

    @property
    def contract(self) -> GamesContract:
        """Names the games: only few unlisted ones get tables."""
        names = [f"game_{number:04d}" for number in range(self.tables)]
        games = tuple(GameSpec(name=name, match=(name,)) for name in names)
        return GamesContract(games=games, unlisted_games=UnlistedGames.OWN_TABLE)

    def records(self, schemas: KnownSchemas) -> list[PlannedRecord]:
        """The records, those of each task together."""
        schema, values = schemas.add(), list[bytes]()
        for task in range(self.tasks):
            for number in range(self.tables * self.days * self.rows):
                time_of = NOW - timedelta(days=number % self.days)
                game = f"game_{number // self.days % self.tables:04d}"
                values.append(schemas.value(schema, f"{task}-{number}", game, at=time_of))
        return [PlannedRecord(offset, value) for offset, value in enumerate(values)]


@dataclass(slots=True)
class _Turn:
    seconds: list[float]
    decision: Decision | None = None


def measure(spark: SparkSession, batch: WideBatch, rounds: int) -> None:
    """Print a row for batches without, and one for batches with a shuffle."""
    with tempfile.TemporaryDirectory() as folder:
        schemas = KnownSchemas(Path(folder))
        records = batch.records(schemas)
        rows = [(b"k", each.value, 0, each.offset, NOW, None) for each in records]
        parts = spark.sparkContext.parallelize(_divided(rows, batch.tasks), batch.tasks)
        frame = spark.createDataFrame(parts.flatMap(lambda part: part), RECORD_TYPES).cache()
        frame.count()
        turns = {name: _Turn([]) for name in ("", shuffle_folder("ingest_events"))}
        with DeltaTables(schemas.location) as tables:
            for _ in range(rounds):
                for name, turn in turns.items():
                    decider = schemas.decider(tables, tasks=batch.tasks, contract=batch.contract, shuffle=name)
                    started = time.perf_counter()
                    turn.decision = decider.decide(FrameRecords(frame), planned(records))
                    turn.seconds.append(time.perf_counter() - started)
        for name, turn in turns.items():
            assert turn.decision is not None  # noqa: S101 # each had its turn
            files = sum(len(entry.files) for entry in turn.decision.tables)
            cells = (
                f"{batch.tasks} x {batch.tables} x {batch.days}",
                "yes" if name else "no",
                f"{files:,}",
                f"{len(pa.compress(msgspec.json.encode(turn.decision.tables), 'zstd', asbytes=True)) / 2**20:.2f} MiB",
                f"{median(turn.seconds):.1f} ({min(turn.seconds):.1f} to {max(turn.seconds):.1f})",
            )
            print(f"| {' | '.join(cells)} |", flush=True)


def _divided(rows: list[RecordRow], parts: int) -> list[list[RecordRow]]:
    share = len(rows) // parts
    return [rows[part * share : (part + 1) * share] for part in range(parts)]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, nargs="+", default=[4, 20])
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--rows", type=int, default=5, help="of each task, table and day")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jars", type=Path, default=Path("build/jars/spark"))
    arguments = parser.parse_args()
    spark = warm_session(arguments.jars)
    print("| tasks x tables x days | shuffle | files | manifest | seconds |\n| --- | --- | --- | --- | --- |")
    for tasks in arguments.tasks:
        measure(spark, WideBatch(tasks, arguments.tables, arguments.days, arguments.rows), arguments.rounds)


if __name__ == "__main__":
    main()
