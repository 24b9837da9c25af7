"""The Spark session of every job."""

from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from gamelake.errors import SettingsError

_CONFIGURATION = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta's default of 50 costs three times the CPU per small commit.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.session.timeZone": "UTC",
    # A query that is stopped inside foreachBatch once ran out of the default stack.
    "spark.driver.extraJavaOptions": "-Xss4m",
    "spark.log.level": "WARN",
}
_LOCAL = {
    # Four attempts for a task, as on a cluster; one core less would starve the driver's own threads.
    "spark.master": "local[*, 4]",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def spark_session(name: str, jars: Path | None) -> SparkSession:
    """The session that spark-submit prepared, or a local one on all cores with the jars of a folder.

    Raises:
        SettingsError: the folder has no jars.
    """
    configuration = SparkConf().setAppName(name).setAll(list(_CONFIGURATION.items()))
    if jars is not None:
        _start_local(configuration, jars)
    return SparkSession.builder.config(conf=configuration).getOrCreate()


def _start_local(configuration: SparkConf, jars: Path) -> None:
    found = sorted(str(path) for path in jars.glob("*.jar"))
    if not found:
        raise SettingsError(f"GAMELAKE_SPARK_JARS is '{jars}', which holds no jars; make setup fetches them")
    configuration.setAll([*_LOCAL.items(), ("spark.jars", ",".join(found))])
    # In a session of its own the JVM does not hear the SIGTERM or Ctrl-C that asks us to finish the batch first;
    # it ends when its standard input does, so it never outlives us.
    gateway = launch_gateway(configuration, {"start_new_session": True})  # type: ignore[no-untyped-call]
    SparkContext(conf=configuration, gateway=gateway)
