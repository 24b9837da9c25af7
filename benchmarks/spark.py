"""What the ways that run on Spark share: the jobs' own session, and the topic as Spark gives it."""

from functools import cache
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.way import Workload
from gamelake.session import spark_session
from gamelake.storage.store import Location

# The fan-out's default.
MAX_OFFSETS_PER_TRIGGER = 1_000_000


@cache
def warm_session(jars: Path) -> SparkSession:
    """The session of this process, configured as every job's is."""
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
    """What the query's micro-batches took, by Spark's own count."""
    return sum(progress.durationMs["triggerExecution"] for progress in query.recentProgress) / 1000
