"""The Spark session of every job: one of its own, or one that several jobs of a process share."""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from gamelake.model.errors import SettingsError
from gamelake.objects.store import Location

# A job gets its session by calling this, after its checks have passed.
Sessions = Callable[[], AbstractContextManager[SparkSession]]

# A query that is stopped inside foreachBatch once ran out of the default stack.
_STACK = "-Xss4m"
# A JVM that only plans compiles little of its code: its C2 compiler would take a third of the time of a start.
_QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
_CONFIGURATION = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta's default of 50 costs three times the CPU per small commit.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.session.timeZone": "UTC",
    # How often an idle stream asks for new records. Spark's 10 ms took 18 % of a core here, and as much of Kafka's.
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.log.level": "WARN",
}
_LOCAL = {
    # Four attempts for a task, as on a cluster; one core less would starve the driver's own threads.
    "spark.master": "local[*, 4]",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    # Executors of a cluster may get the library only with a task, which is too late for this process.
    "spark.python.daemon.module": "gamelake.streaming.python_daemon",
}
_LOG_STORE = "dev.gamelake.storage.ConditionalPutLogStore"
# Delta's own store for local disks can replace a version that another process has just made.
_LOCAL_DISK = {
    "spark.delta.logStore.file.impl": "dev.gamelake.storage.HardLinkLogStore",
    # Spark's own leaves empty files after a power cut.
    "spark.sql.streaming.checkpointFileManagerClass": "dev.gamelake.storage.SyncedCheckpointFileManager",
}
_SDK = "software.amazon.awssdk.auth.credentials"
_S3 = {
    # Tables are s3:// for every engine; Hadoop's own name for that is s3a://.
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.s3.impl": "org.apache.hadoop.fs.s3a.S3A",
    # Each JVM reads the keys from its own environment: a configuration is printed, logged and sent to executors.
    "spark.hadoop.fs.s3a.aws.credentials.provider": (
        f"{_SDK}.EnvironmentVariableCredentialsProvider,{_SDK}.ProfileCredentialsProvider,"
        "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider"
    ),
    # No requests for folders around each object: names never repeat, and no object is a folder.
    "spark.hadoop.fs.s3a.performance.flags": "create,delete,mkdir",
    "spark.delta.logStore.s3.impl": _LOG_STORE,
    "spark.delta.logStore.s3a.impl": _LOG_STORE,
    "spark.sql.streaming.checkpointFileManagerClass": "dev.gamelake.storage.ConditionalPutCheckpointFileManager",
}


def spark_session(name: str, lakehouse: Location, jars: Path | None, *, only_plans: bool = False) -> SparkSession:
    """Open a session on the lakehouse: local with the jars of a folder, else by spark-submit or spark-defaults.conf.

    Args:
        name: of the application.
        lakehouse: the tables.
        jars: the folder, for a local session; next to it may be `class_archive`.
        only_plans: whether all rows are processed in Python, so that the JVM has little to do.

    Raises:
        SettingsError: the folder has no jars.
    """
    configuration = SparkConf().setAppName(name).setAll([*_CONFIGURATION.items(), *store_options(lakehouse).items()])
    # A bar of the tasks, for a person who waits for a job; in a log it would be noise.
    configuration.set("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    configuration.set("spark.driver.extraJavaOptions", " ".join(jvm_options(jars, only_plans=only_plans)))
    if jars is not None:
        configuration.setAll([*_LOCAL.items(), ("spark.jars", ",".join(_jars(jars)))])
    # In a process session of its own the JVM does not get the SIGTERM or Ctrl-C that asks this process to finish the
    # batch first; it ends when its standard input does, so it never outlives this process. Under spark-submit there
    # is a JVM already.
    gateway = launch_gateway(configuration, {"start_new_session": True})  # type: ignore[no-untyped-call]
    SparkContext(conf=configuration, gateway=gateway)
    return SparkSession.builder.config(conf=configuration).getOrCreate()


def class_archive(jars: Path) -> Path:
    """Return the file from which a local session's JVM maps its classes, if `jobs.archive_classes` has made it.

    A JVM ignores the archive of another Java, or of other jars.
    """
    return jars.with_name(f"{jars.name}.jsa")


def jvm_options(jars: Path | None, *, only_plans: bool) -> list[str]:
    """Return the options of a driver's JVM; they don't affect one that spark-submit has started."""
    options = [_STACK, *([_QUICK_COMPILER] if only_plans else [])]
    if jars is not None and (archive := class_archive(jars.absolute())).is_file():
        # Without its log the JVM is silent about an archive that it can't use.
        options += [quoted_option("SharedArchiveFile", archive), "-Xlog:disable"]
    return options


def quoted_option(name: str, file: Path) -> str:
    """Return an option of the JVM whose value is a path: Spark splits its options at spaces outside of quotes."""
    return f'"-XX:{name}={file}"'


@contextmanager
def own_session(
    name: str, lakehouse: Location, jars: Path | None, *, only_plans: bool = False
) -> Iterator[SparkSession]:
    """Open a session that ends with the block; see `spark_session`."""
    spark = spark_session(name, lakehouse, jars, only_plans=only_plans)
    yield spark
    spark.stop()


class SharedSpark:
    """One Spark for several jobs of a process; it starts with the first of them.

    Each job has a session with its own settings; jobs share executors, cores and memory, by pools of the fair scheduler
    if it is configured.
    """

    def __init__(self, name: str, lakehouse: Location, jars: Path | None, *, only_plans: bool = False) -> None:
        self._start = partial(spark_session, name, lakehouse, jars, only_plans=only_plans)
        self._lock = threading.Lock()
        self._spark: SparkSession | None = None

    @contextmanager
    def session(self, job: str) -> Iterator[SparkSession]:
        """Open a session for one job, for use by the calling thread."""
        with self._lock:
            self._spark = self._spark or self._start()
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", job)
        yield self._spark.newSession()

    def stop(self) -> None:
        """End it, once no job uses it any more."""
        if self._spark is not None:
            self._spark.stop()


def store_options(lakehouse: Location) -> Mapping[str, str]:
    """Return Spark's options for the lakehouse's store and for commits that never replace another process's."""
    if not lakehouse.uri.startswith("s3://"):
        return _LOCAL_DISK
    configuration = dict(_S3)
    if endpoint := lakehouse.options.get("AWS_ENDPOINT_URL"):
        configuration["spark.hadoop.fs.s3a.endpoint"] = endpoint
        configuration["spark.hadoop.fs.s3a.path.style.access"] = "true"
    if region := lakehouse.options.get("AWS_REGION"):
        configuration["spark.hadoop.fs.s3a.endpoint.region"] = region
    return configuration


def _jars(folder: Path) -> list[str]:
    found = sorted(str(path) for path in folder.glob("*.jar"))
    if not found:
        raise SettingsError(f"GAMELAKE_SPARK_JARS is '{folder}', which holds no jars; make setup fetches them")
    return found


class JavaCause(NamedTuple):
    """An exception of the JVM: its class, and the condition by which Spark names it ("" if it has none)."""

    class_name: str
    condition: str


def java_causes(error: BaseException) -> Iterator[JavaCause]:
    """Return the exceptions of the JVM behind an error of PySpark, the outermost first; none if the error has none.

    An error that a function of `foreachBatch` raises reaches the query's own error as text only: ask for the causes in
    that function.
    """
    throwable = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while throwable is not None:
        try:
            condition = throwable.getCondition() or ""
        except Py4JError:
            condition = ""
        yield JavaCause(throwable.getClass().getName(), condition)
        throwable = throwable.getCause()
