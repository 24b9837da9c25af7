"""Spark for the compared approaches: session and topic; and the ceiling: Spark's Kafka source without any output."""

from functools import cache
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.stopwatch import Stopwatch
from benchmarks.workload import ApproachResult, Workload, check_records
from gamelake.kafka import KafkaAccess
from gamelake.session import spark_session
from gamelake.storage.store import Location
from gamelake.streaming.kafka_source import SourceTopic

# The fan-out's default.
MAX_OFFSETS_PER_TRIGGER = 1_000_000


@cache
def warm_session(jars: Path) -> SparkSession:
    """The session of this process, configured as the jobs' sessions."""
    return spark_session("benchmark", Location(uri="file:///"), jars)


def kafka_records(spark: SparkSession, workload: Workload) -> DataFrame:
    """The topic as a stream from its beginning, in batches as large as the fan-out's."""
    options = {
        "kafka.bootstrap.servers": workload.bootstrap_servers,
        "subscribe": workload.topic,
        "startingOffsets": "earliest",
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
    topic = SourceTopic(KafkaAccess(workload.bootstrap_servers), workload.topic)
    records = topic.records(spark, MAX_OFFSETS_PER_TRIGGER)
    return _read(records.coalesce(spark.sparkContext.defaultParallelism), workload)


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
