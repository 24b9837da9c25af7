"""Figures as Spark has them: what suites judge."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DoubleType, StructField, StructType

from gamelake.quality.suites.counting import GAME, ROWS, SAMPLES, UNJUDGED, CountBroken

_MOST_TASKS = 2_000


@contextmanager
def counted(spark: SparkSession, count: CountBroken) -> Iterator[DataFrame]:
    """The counts of all games' files, made in one job and kept until the end of the block."""
    tasks = count.tasks()
    spread = spark.createDataFrame(tasks).repartition(min(max(1, len(tasks)), _MOST_TASKS))
    frame = spread.mapInArrow(count, _ddl(count)).persist()  # type: ignore[arg-type] # a callable object, which pickles
    try:
        yield frame
    finally:
        frame.unpersist()


def figures(spark: SparkSession, observed: Mapping[str, float]) -> DataFrame:
    """Figures by name as one row."""
    columns = StructType([StructField(name, DoubleType()) for name in observed])
    return spark.createDataFrame([tuple(float(value) for value in observed.values())], columns)


def _ddl(count: CountBroken) -> str:
    rules = [f"`{rule.name}` bigint" for rule in count.checked.rules.rules]
    said = [f"`{name}` map<string, string>" for name in (SAMPLES, UNJUDGED)]
    return ", ".join([f"`{GAME}` string", f"`{ROWS}` bigint", *rules, *said])
