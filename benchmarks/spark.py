"""Spark for the compared approaches: session and topic; and the ceiling: Spark's Kafka source without any output."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.stopwatch import Stopwatch
from benchmarks.workload import ApproachResult, Workload, check_records
from gamelake.layers.bronze import RECORD_SCHEMA
from gamelake.objects.store import Location
from gamelake.session import spark_session
from gamelake.streaming.kafka.batch_records import RecordTask
from gamelake.streaming.kafka.consumers import PartitionRange
from gamelake.streaming.plan import REPORT_SCHEMA

# The fan-out's default.
MAX_OFFSETS_PER_TRIGGER = 1_000_000


@cache
def warm_session(jars: Path) -> SparkSession:
    """The session of this process, configured as the jobs' sessions."""
    return spark_session("benchmark", Location(uri="file:///"), jars)


def kafka_records(spark: SparkSession, workload: Workload, *, headers: bool = False) -> DataFrame:
    """The topic as a stream from its beginning, in batches as large as the fan-out's."""
    options = {
        "kafka.bootstrap.servers": workload.bootstrap_servers,
        "subscribe": workload.topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true" if headers else "false",
        "maxOffsetsPerTrigger": str(MAX_OFFSETS_PER_TRIGGER),
    }
    return spark.readStream.format("kafka").options(**options).load()


def trigger_seconds(query: StreamingQuery) -> float:
    """Seconds of the query's micro-batches, as Spark measures them."""
    return sum(progress.durationMs["triggerExecution"] for progress in query.recentProgress) / 1000


def read_into_nowhere(workload: Workload) -> ApproachResult:
    """Read the whole topic as a stream into Spark's `noop` sink."""
    return _read(kafka_records(warm_session(workload.spark_jars), workload), workload)


def read_fan_out_columns_into_nowhere(workload: Workload) -> ApproachResult:
    """The same with the columns and the number of tasks of the fan-out."""
    spark = warm_session(workload.spark_jars)
    records = kafka_records(spark, workload, headers=True).select(*RECORD_SCHEMA.names)
    return _read(records.coalesce(spark.sparkContext.defaultParallelism), workload)


@dataclass(frozen=True, slots=True)
class FrameRecords:
    """The rows of a DataFrame as the records of a batch, for what Spark itself is to read."""

    frame: DataFrame

    @property
    def spark(self) -> SparkSession:
        """See `BatchRecords`."""
        return self.frame.sparkSession

    def process(self, task: RecordTask, row_types: str, tasks: int) -> DataFrame:
        """See `BatchRecords`."""
        return self.frame.coalesce(tasks).mapInArrow(task, row_types)

    def reports(self, task: RecordTask, tasks: int) -> list[bytes]:
        """See `BatchRecords`."""
        return [bytes(row.report) for row in self.process(task, REPORT_SCHEMA, tasks).collect()]

    def part(self, ranges: Sequence[PartitionRange]) -> "FrameRecords":
        """See `BatchRecords`."""
        wanted = " OR ".join(
            f"(partition = {each.partition} AND offset >= {each.start} AND offset < {each.end})" for each in ranges
        )
        return FrameRecords(self.frame.where(wanted or "false"))

    def read(self) -> pa.Table:
        """See `BatchRecords`."""
        return self.frame.toArrow()


def _read(records: DataFrame, workload: Workload) -> ApproachResult:
    checkpoint = str(workload.directory / "checkpoint")
    watch = Stopwatch.start(workload.kafka_pid)
    writer = records.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    lap = watch.stop()
    moved = sum(progress.numInputRows for progress in query.recentProgress)
    check_records("the ceiling", moved, workload.records)
    return ApproachResult(records=moved, lap=lap, trigger_seconds=trigger_seconds(query))
