"""Figures as Spark has them: what suites judge."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import DoubleType, StructField, StructType

from gamelake.quality.suites.counting import GAME, ROWS, SAMPLES, UNJUDGED, CountBroken

_MOST_TASKS = 2_000


def counts_of(spark: SparkSession, count: CountBroken) -> list[Row]:
    """The counts of all games' files, each made in a task."""
    tasks = count.tasks()
    if not len(tasks):
        return []
    spread = spark.createDataFrame(tasks).repartition(min(len(tasks), _MOST_TASKS))
    return spread.mapInArrow(count, _ddl(count)).collect()


def figures(spark: SparkSession, observed: Mapping[str, float]) -> DataFrame:
    """Figures by name as one row."""
    columns = StructType([StructField(name, DoubleType()) for name in observed])
    return spark.createDataFrame([tuple(float(value) for value in observed.values())], columns)


def _ddl(count: CountBroken) -> str:
    rules = [f"`{rule.name}` bigint" for rule in count.checked.rules.rules]
    said = [f"`{name}` map<string, string>" for name in (SAMPLES, UNJUDGED)]
    return ", ".join([f"`{GAME}` string", f"`{ROWS}` bigint", *rules, *said])
