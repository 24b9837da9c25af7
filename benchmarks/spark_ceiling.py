"""The ceiling: what Spark's Kafka source alone can do on this machine, its records going nowhere."""

from pyspark.sql import DataFrame

from benchmarks.spark import MAX_OFFSETS_PER_TRIGGER, kafka_records, trigger_seconds, warm_session
from benchmarks.stopwatch import Stopwatch
from benchmarks.way import Outcome, Workload, check_records
from gamelake.kafka import KafkaAccess
from gamelake.streaming.kafka_source import SourceTopic


def read_into_nowhere(workload: Workload) -> Outcome:
    """Read the whole topic as a stream into Spark's `noop` sink, as plainly as can be."""
    return _read(kafka_records(warm_session(workload.spark_jars), workload), workload)


def read_fan_out_columns_into_nowhere(workload: Workload) -> Outcome:
    """The same with the columns and the number of tasks that the fan-out takes."""
    spark = warm_session(workload.spark_jars)
    topic = SourceTopic(KafkaAccess(workload.bootstrap_servers), workload.topic)
    records = topic.records(spark, MAX_OFFSETS_PER_TRIGGER)
    return _read(records.coalesce(spark.sparkContext.defaultParallelism), workload)


def _read(records: DataFrame, workload: Workload) -> Outcome:
    checkpoint = str(workload.directory / "checkpoint")
    watch = Stopwatch.start(workload.kafka_pid)
    writer = records.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    lap = watch.stop()
    moved = sum(progress.numInputRows for progress in query.recentProgress)
    check_records("the ceiling", moved, workload.records)
    return Outcome(records=moved, lap=lap, trigger_seconds=trigger_seconds(query))
