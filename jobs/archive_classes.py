"""Archives the classes that Spark loads, so that later JVMs map them instead of parsing them.

Such a JVM takes two thirds of the CPU time to start and to use Delta tables. The file is next to the folder of jars:
that of GAMELAKE_SPARK_JARS for local sessions (`make setup` runs this), or PySpark's own for all of Spark's JVMs in the
image.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from gamelake.command import command_parser
from gamelake.model.environment import Environment
from gamelake.model.logs import event_logger
from gamelake.objects.store import Location
from gamelake.program import OK, run
from gamelake.session import class_archive, quoted_option, spark_session

log = event_logger(__name__)

# What the other JVMs of a cluster begin with; a local session loads most of the classes that they need.
_PROCESSES = (
    "org.apache.spark.deploy.history.HistoryServer",
    "org.apache.spark.deploy.master.Master",
    "org.apache.spark.deploy.worker.Worker",
    "org.apache.spark.executor.CoarseGrainedExecutorBackend",
)
# A store that refuses every connection at once, so that a request loads its client's classes.
_NO_STORE = {
    "fs.s3a.endpoint": "http://127.0.0.1:9",
    "fs.s3a.endpoint.region": "us-east-1",
    "fs.s3a.path.style.access": "true",
    "fs.s3a.access.key": "none",
    "fs.s3a.secret.key": "none",
    "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "0",
}


def main() -> int:
    """Write the archive of the jars that GAMELAKE_SPARK_JARS names, or of PySpark's own."""
    command_parser(__doc__).parse_args()
    folder = Environment(os.environ).path("GAMELAKE_SPARK_JARS")
    archive(folder.absolute() if folder else None)
    return OK


def archive(jars: Path | None) -> None:
    """Run what most jobs run, and write the classes that it has loaded; without `jars` those of PySpark's own jars."""
    target = class_archive(jars or Path(pyspark.__file__).with_name("jars"))
    if jars is None:
        os.environ["PYSPARK_SUBMIT_ARGS"] = "--master local[2] --conf spark.driver.bindAddress=127.0.0.1 pyspark-shell"
    unfinished = target.with_suffix(".unfinished")
    # A JVM that maps an archive can write none.
    target.unlink(missing_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = f"-Xlog:disable {quoted_option('ArchiveClassesAtExit', unfinished)}"
    session = spark_session("classes", Location(uri="file:///"), jars)
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - has no public name
    with tempfile.TemporaryDirectory() as folder:
        load_classes(session, folder)
    if jars is None:
        load_classes_of_a_cluster(session)
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


def load_classes_of_a_cluster(session: SparkSession) -> None:
    """Load the classes of Spark's other processes, and those of the client of object stores."""
    java: Any = session.sparkContext._jvm  # noqa: SLF001 - has no public name
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    for name in _PROCESSES:
        java.java.lang.Class.forName(name, True, loader)
    settings = java.org.apache.hadoop.conf.Configuration()
    for name, value in _NO_STORE.items():
        settings.set(name, value)
    path = java.org.apache.hadoop.fs.Path("s3a://none/none")
    with suppress(Py4JJavaError):
        path.getFileSystem(settings).exists(path)


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    run(main)
