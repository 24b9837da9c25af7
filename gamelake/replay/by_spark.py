"""Reads the records of a replay with Spark, on as many machines as it has; those of one Kafka partition together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, lit

from gamelake.fanout.report import REPORT_SCHEMA
from gamelake.lake.manifest import OffsetRange
from gamelake.lake.store import Location
from gamelake.naming import QUARANTINE
from gamelake.replay.marks import COORDINATES, MARKED_IN, WHY
from gamelake.replay.selection import Selection
from gamelake.replay.task import ReplayPlan, ReplayReport, ReplayTask, unpacked


@dataclass(frozen=True, slots=True)
class BySpark:
    """Runs the tasks of a replay on Spark."""

    spark: SparkSession
    location: Location

    def reports(self, selection: Selection, plan: ReplayPlan) -> tuple[ReplayReport, ...]:
        """Read a selection, do what the plan says."""
        return run(self._records(selection, plan.versions), plan)

    def _records(self, selection: Selection, versions: Mapping[str, int]) -> DataFrame:
        """The records, in tables as they were at some versions; of what a replay settles those not yet settled."""
        found = table(self.spark, self.location, selection.source, versions[selection.source])
        for condition in _conditions(selection):
            found = found.where(condition)
        if selection.source == QUARANTINE:
            found = found.withColumnsRenamed({"kafka_partition": "partition", "kafka_offset": "offset"})
        marks = MARKED_IN.get(selection.source, "")
        if marks in versions:
            settled = table(self.spark, self.location, marks, versions[marks]).select(*COORDINATES)
            found = found.join(settled, list(COORDINATES), "left_anti")
        return found


def run(found: DataFrame, plan: ReplayPlan) -> tuple[ReplayReport, ...]:
    """Do what the plan says with records of bronze or of the dead letters."""
    rows = _in_order(found).mapInArrow(ReplayTask(plan), REPORT_SCHEMA).collect()
    return tuple(unpacked(bytes(row.report)) for row in rows)


def table(spark: SparkSession, location: Location, name: str, version: int) -> DataFrame:
    """A version of a table."""
    return spark.read.format("delta").option("versionAsOf", version).load(location.child(name))


def _in_order(found: DataFrame) -> DataFrame:
    """The records as tasks get them; of duplicates the first is the one that counts."""
    why = [col(name) for name in WHY.values() if name in found.columns]
    columns = [col("topic"), col("offset"), col("value"), *why]
    partition, moment = col("partition").cast("int").alias("partition"), col("kafka_timestamp").alias("timestamp")
    tasks = found.sparkSession.sparkContext.defaultParallelism
    spread = found.select(*columns, partition, moment).repartition(tasks, "topic", "partition")
    return spread.sortWithinPartitions("partition", "timestamp", "offset")


def _conditions(selection: Selection) -> list[Column]:
    day, taken_in = col("ingest_date"), col("kafka_timestamp")
    conditions = [col("reason").isin(list(selection.reasons))] if selection.reasons else []
    conditions += [col("rule").isin(list(selection.rules))] if selection.rules else []
    # The quarantine's rows lie by the days of the events.
    by_day = selection.source != QUARANTINE
    if selection.since is not None:
        conditions += [day >= lit(selection.since.date())] if by_day else []
        conditions.append(taken_in >= lit(selection.since))
    if selection.until is not None:
        conditions += [day <= lit(selection.until.date())] if by_day else []
        conditions.append(taken_in < lit(selection.until))
    return conditions + ([_any_of(selection.offsets)] if selection.offsets else [])


def _any_of(ranges: Iterable[OffsetRange]) -> Column:
    condition = lit(False)
    for each in ranges:
        condition = condition | ((col("partition") == each.partition) & col("offset").between(each.first, each.last))
    return condition
