"""The Spark session of every job."""

from pathlib import Path

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


def spark_session(name: str, jars: Path | None) -> SparkSession:
    """The session that spark-submit prepared, or a local one on all cores with the jars of a folder.

    Raises:
        SettingsError: the folder has no jars.
    """
    builder = SparkSession.builder.appName(name)
    for key, value in _CONFIGURATION.items():
        builder = builder.config(key, value)
    if jars is not None:
        builder = _local(builder, jars)
    return builder.getOrCreate()


def _local(builder: SparkSession.Builder, jars: Path) -> SparkSession.Builder:
    found = sorted(str(path) for path in jars.glob("*.jar"))
    if not found:
        raise SettingsError(f"GAMELAKE_SPARK_JARS is '{jars}', which holds no jars; make setup fetches them")
    return (
        # Four attempts for a task, as on a cluster; one core less would starve the driver's own threads.
        builder.master("local[*, 4]")
        .config("spark.jars", ",".join(found))
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
    )
