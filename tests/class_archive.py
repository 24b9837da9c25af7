"""Archives the classes that Spark loads: a JVM with them takes two thirds of the time to start and to use Delta tables.

Run as `python -m tests.class_archive FILE`. A JVM takes the file by -XX:SharedArchiveFile, and ignores one of another
Java or of other jars.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from gamelake.session import spark_session
from gamelake.storage.store import Location
from tools.embedded.java import spark_environment

JARS = Path(__file__).parents[1] / "build" / "jars" / "spark"


def archive(file: Path) -> None:
    """Run what most tests run, and write the classes that it has loaded."""
    unfinished = file.with_suffix(".unfinished")
    os.environ |= spark_environment()
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:+UseSerialGC -Xlog:disable -XX:ArchiveClassesAtExit={unfinished}"
    session = spark_session("classes", Location(uri="file:///"), JARS)
    gateway = session.sparkContext._gateway  # noqa: SLF001 - has no public name
    with tempfile.TemporaryDirectory() as folder:
        load_classes(session, folder)
    session.stop()
    assert gateway is not None
    # The JVM writes them when it ends, which it does when its input does.
    gateway.proc.stdin.close()
    gateway.proc.wait()
    unfinished.replace(file)


def load_classes(session: SparkSession, folder: str) -> None:
    """Write and read Delta tables in batches and in a stream, with Python workers."""
    source, target = f"{folder}/source", f"{folder}/target"
    session.range(100).selectExpr("id", "id % 3 as third").write.format("delta").partitionBy("third").save(source)

    def keep(batch: DataFrame, number: int) -> None:
        batch.mapInArrow(_same, batch.schema).write.format("delta").mode("append").save(target)

    stream = session.readStream.format("delta").load(source)
    query = stream.writeStream.foreachBatch(keep).option("checkpointLocation", f"{folder}/checkpoint")
    query.trigger(availableNow=True).start().awaitTermination()
    session.read.format("delta").load(target).groupBy("third").count().collect()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    archive(Path(sys.argv[1]).resolve())
