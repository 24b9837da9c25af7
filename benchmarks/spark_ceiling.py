"""The ceiling: what Spark's Kafka source alone can do on this machine, its records going nowhere."""

from benchmarks.spark import kafka_records, trigger_seconds, warm_session
from benchmarks.stopwatch import Stopwatch
from benchmarks.way import Outcome, Workload, check_records


def read_into_nowhere(workload: Workload) -> Outcome:
    """Read the whole topic as a stream into Spark's `noop` sink."""
    spark = warm_session(workload.spark_jars)
    checkpoint = str(workload.directory / "checkpoint")
    watch = Stopwatch.start(workload.kafka_pid)
    writer = kafka_records(spark, workload).writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    lap = watch.stop()
    moved = sum(progress.numInputRows for progress in query.recentProgress)
    check_records("the ceiling", moved, workload.records)
    return Outcome(records=moved, lap=lap, trigger_seconds=trigger_seconds(query))
