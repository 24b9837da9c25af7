"""Archives the classes that Spark loads, so that the JVMs of later local sessions map them instead of parsing them.

Such a JVM takes two thirds of the CPU time to start and to use Delta tables. The file is next to the folder of jars
(GAMELAKE_SPARK_JARS), where sessions find it; `make setup` runs this.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from gamelake.model.environment import Environment
from gamelake.model.logs import event_logger
from gamelake.program import OK, run
from gamelake.session import class_archive, spark_session
from gamelake.storage.store import Location

log = event_logger(__name__)


def main() -> int:
    """Write the archive of the jars that GAMELAKE_SPARK_JARS names."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    archive(Path(Environment(os.environ).required("GAMELAKE_SPARK_JARS")).absolute())
    return OK


def archive(jars: Path) -> None:
    """Run what most jobs run, and write the classes that it has loaded."""
    target = class_archive(jars)
    unfinished = target.with_suffix(".unfinished")
    # A JVM that maps an archive can write none.
    target.unlink(missing_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = f"-Xlog:disable -XX:ArchiveClassesAtExit={unfinished}"
    session = spark_session("classes", Location(uri="file:///"), jars)
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - has no public name
    with tempfile.TemporaryDirectory() as folder:
        load_classes(session, folder)
    session.stop()
    # The JVM writes them when it ends, which it does when its input does.
    gateway.proc.stdin.close()
    gateway.proc.wait()
    if unfinished.is_file():
        unfinished.replace(target)
    else:
        # An empty one, which every JVM ignores: without a file make would try again each time.
        target.touch()
        log.warning("classes_not_archived", action="local sessions start without an archive")


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
    run(main)
