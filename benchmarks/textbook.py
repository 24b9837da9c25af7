"""The approaches of Spark's and Delta's guides: `foreachBatch`, `persist`, and Delta writes by Spark.

Rows are decoded by the fan-out's own decoder.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 # its usual name
from pyspark.sql.types import StructType

from benchmarks.decoding import event_columns, event_rows, process_decoder
from benchmarks.spark import kafka_records, trigger_seconds, warm_session
from benchmarks.stopwatch import Stopwatch
from benchmarks.traffic import write_contract
from benchmarks.workload import ONE_TABLE, ApproachResult, Workload, check_records, location_of
from gamelake.contract.games import GamesContract, load_games
from gamelake.layers.bronze import BRONZE_PARTITION
from gamelake.layers.routing import Router
from gamelake.layers.silver import COMMON_SCHEMA, EVENT_DATE
from gamelake.model.naming import BRONZE_EVENTS, SILVER_EVENTS
from gamelake.objects.store import Location

GAME_TABLE = "game_table"

TABLES = 30
_THREADS = 8


def decoded_columns() -> pa.Schema:
    """The columns of all versions together, with those for the choice of the table and for the partitions."""
    return event_columns().append(pa.field(GAME_TABLE, pa.string()))


@dataclass(frozen=True, slots=True)
class DecodeTask:
    """The function that Spark maps over the records of a micro-batch (`mapInArrow`)."""

    registry_url: str
    lakehouse: Location
    contract: GamesContract
    columns: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode records; undecodable ones are left out."""
        router = Router(self.contract, ())
        decoder = process_decoder(self.registry_url, self.lakehouse)
        columns = self.columns.remove(self.columns.get_field_index(GAME_TABLE))
        for batch in batches:
            for group in decoder.decode(batch.column("value")).groups:
                rows = event_rows(batch, group, columns)
                codes = pa.array(router.route(rows.column("game_name")))
                yield rows.append_column(GAME_TABLE, pa.array(router.tables).take(codes))


Write = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Textbook:
    """The body of the stream; `games` makes the writes of the game tables from the decoded rows."""

    task: DecodeTask
    columns: StructType
    lakehouse: Location
    games: Callable[["Textbook", DataFrame], Sequence[Write]]

    def __call__(self, records: DataFrame, _batch_id: int) -> None:
        """Decode a batch once, and append it to every table, several at a time."""
        decoded = records.select("value", "partition", "offset").mapInArrow(self.task, self.columns).persist()
        common = decoded.select(*COMMON_SCHEMA.names, EVENT_DATE)
        writes = [
            lambda: self.append(common, SILVER_EVENTS, EVENT_DATE),
            lambda: self.append(_bronze(records), BRONZE_EVENTS, BRONZE_PARTITION),
            *self.games(self, decoded),
        ]
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(lambda write: write(), writes))
        decoded.unpersist()

    def append(self, rows: DataFrame, table: str, *partition_by: str) -> None:
        """Append rows to a Delta table by its path."""
        rows.write.format("delta").mode("append").partitionBy(*partition_by).save(self.lakehouse.child(table))


def _bronze(records: DataFrame) -> DataFrame:
    return records.withColumnsRenamed({"timestamp": "kafka_timestamp"}).select(
        "kafka_timestamp", "topic", "partition", "offset", "key", "value",
        F.to_date("kafka_timestamp").alias(BRONZE_PARTITION),
    )  # fmt: skip


def append_to_each(workload: Workload) -> ApproachResult:
    """One filtered append per game table."""
    return _run(workload, _filtered_appends)


def append_partitioned(workload: Workload) -> ApproachResult:
    """One append for all games, into one table that is partitioned by game."""
    return _run(workload, _partitioned_append)


def _filtered_appends(textbook: Textbook, decoded: DataFrame) -> Sequence[Write]:
    return [_filtered_append(textbook, decoded, game.table) for game in textbook.task.contract.games]


def _filtered_append(textbook: Textbook, decoded: DataFrame, table: str) -> Write:
    rows = decoded.where(F.col(GAME_TABLE) == table).drop(GAME_TABLE)
    return lambda: textbook.append(rows, table, EVENT_DATE)


def _partitioned_append(textbook: Textbook, decoded: DataFrame) -> Sequence[Write]:
    return [lambda: textbook.append(decoded, ONE_TABLE, GAME_TABLE, EVENT_DATE)]


def _run(workload: Workload, games: Callable[[Textbook, DataFrame], Sequence[Write]]) -> ApproachResult:
    spark = warm_session(workload.spark_jars)
    textbook = _textbook(spark, workload, games)
    checkpoint = str(workload.directory / "checkpoint")
    watch = Stopwatch.start(workload.kafka_pid)
    writer = kafka_records(spark, workload).writeStream.foreachBatch(textbook)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    lap = watch.stop()
    rows, files = _written(workload)
    check_records("the textbook way", rows, workload.records)
    return ApproachResult(records=workload.records, lap=lap, trigger_seconds=trigger_seconds(query), files=files)


def _textbook(
    spark: SparkSession, workload: Workload, games: Callable[[Textbook, DataFrame], Sequence[Write]]
) -> Textbook:
    columns = decoded_columns()
    contract = load_games(write_contract(workload.directory, TABLES))
    task = DecodeTask(workload.registry_url, location_of(workload), contract, columns)
    return Textbook(task, spark.createDataFrame(columns.empty_table()).schema, location_of(workload), games)


def _written(workload: Workload) -> tuple[int, int]:
    """Rows in the game tables, and files in all tables."""
    silver = workload.directory / "lakehouse" / "silver"
    tables = [path for path in silver.iterdir() if path.name != "events"]
    rows = sum(_rows(str(path)) for path in tables)
    return rows, sum(1 for _ in (workload.directory / "lakehouse").rglob("*.parquet"))


def _rows(table: str) -> int:
    actions = pa.table(DeltaTable(table).get_add_actions(flatten=True))
    return sum(int(rows) for rows in actions["num_records"].to_pylist())
