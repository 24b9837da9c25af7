"""Readers of a replay's records: Spark, or this process where a replay is smaller than the start of Spark."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, lit

from gamelake.model.naming import QUARANTINE
from gamelake.recovery.replay.marks import COORDINATES, MARKED_IN, WHY
from gamelake.recovery.replay.selection import Selection, column_of
from gamelake.recovery.replay.task import ReplayPlan, ReplayReport, ReplayTask, decode_report
from gamelake.storage.appends import schema_of
from gamelake.storage.datasets import dataset
from gamelake.storage.delta_log import FileEntry, live_files
from gamelake.storage.manifests import OffsetRange
from gamelake.storage.store import Location
from gamelake.storage.tables import open_table
from gamelake.streaming.plan import REPORT_SCHEMA

_RECORDS_A_BATCH = 20_000


@dataclass(frozen=True, slots=True)
class SparkReader:
    """Reads records and runs the tasks on Spark."""

    spark: SparkSession
    location: Location

    def reports(self, selection: Selection, plan: ReplayPlan) -> tuple[ReplayReport, ...]:
        """Run the plan on the selected records; a report for each task and chunk."""
        return run(self._records(selection, plan.versions), plan)

    def _records(self, selection: Selection, versions: Mapping[str, int]) -> DataFrame:
        """The selected records at fixed versions of the tables, without those that are settled already."""
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
    """Run the plan on records of bronze, dead letters or the quarantine."""
    rows = _sorted_by_source(found).mapInArrow(ReplayTask(plan), REPORT_SCHEMA).collect()
    return tuple(decode_report(bytes(row.report)) for row in rows)


def table(spark: SparkSession, location: Location, name: str, version: int) -> DataFrame:
    """A table at a version."""
    return spark.read.format("delta").option("versionAsOf", version).load(location.child(name))


def _sorted_by_source(found: DataFrame) -> DataFrame:
    """The records in the order of the tasks: by partition, time and offset; of duplicates the first counts."""
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
    # The quarantine is partitioned by the days of events, not of ingestion.
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


@dataclass(frozen=True, slots=True)
class LocalReader:
    """Reads records and runs one task in this process."""

    location: Location

    def bytes(self, selection: Selection, version: int) -> int:
        """The size of the files that a selection has to read."""
        return sum(file.size for file in self._files(selection, version))

    def reports(self, selection: Selection, plan: ReplayPlan) -> tuple[ReplayReport, ...]:
        """Run the plan on the selected records; a report for each task and chunk."""
        found = self._read(selection, plan.versions[selection.source])
        marks = MARKED_IN.get(selection.source, "")
        if marks in plan.versions:
            settled = self._table(marks, plan.versions[marks], list(COORDINATES))
            found = found.join(settled, list(COORDINATES), join_type="left anti")
        batches = _in_order(found).to_batches(max_chunksize=_RECORDS_A_BATCH)
        return tuple(_decoded(ReplayTask(plan)(iter(batches))))

    def _read(self, selection: Selection, version: int) -> pa.Table:
        schema = schema_of(open_table(self.location, selection.source, version))
        why = [WHY[selection.source]] if selection.source in WHY else []
        rows = dataset(self.location, selection.source, schema, self._files(selection, version))
        columns = {name: pc.field(column_of(selection, name)) for name in (*COORDINATES, "value", *why)}
        return rows.to_table(columns=columns, filter=_condition(selection))

    def _table(self, name: str, version: int, columns: list[str]) -> pa.Table:
        handle = open_table(self.location, name, version)
        return dataset(self.location, name, schema_of(handle), live_files(handle)).to_table(columns=columns)

    def _files(self, selection: Selection, version: int) -> list[FileEntry]:
        """The files that may have such records, by their days and offset statistics."""
        handle = open_table(self.location, selection.source, version)
        offsets = {row["path"]: row for row in pa.table(handle.get_add_actions(flatten=True)).to_pylist()}
        return [file for file in live_files(handle) if _may_have(selection, file, offsets[file.path])]


def _decoded(reports: Iterator[pa.RecordBatch]) -> Iterator[ReplayReport]:
    return (decode_report(report) for batch in reports for report in batch.column(0).to_pylist())


def _in_order(found: pa.Table) -> pa.Table:
    """The records in the order of the tasks: by partition, time and offset; of duplicates the first counts."""
    found = found.set_column(
        found.schema.get_field_index("partition"), "partition", found["partition"].cast(pa.int32())
    ).rename_columns({"kafka_timestamp": "timestamp"})
    return found.sort_by([(name, "ascending") for name in ("partition", "timestamp", "offset")]).combine_chunks()


def _condition(selection: Selection) -> pc.Expression | None:
    partition, offset = pc.field(column_of(selection, "partition")), pc.field(column_of(selection, "offset"))
    taken_in = pc.field("kafka_timestamp")
    conditions = [pc.field("reason").isin(list(selection.reasons))] if selection.reasons else []
    conditions += [pc.field("rule").isin(list(selection.rules))] if selection.rules else []
    if selection.since is not None:
        conditions.append(taken_in >= pa.scalar(selection.since, pa.timestamp("us", "UTC")))
    if selection.until is not None:
        conditions.append(taken_in < pa.scalar(selection.until, pa.timestamp("us", "UTC")))
    if selection.offsets:
        ranges = [
            (partition == each.partition) & (offset >= each.first) & (offset <= each.last) for each in selection.offsets
        ]
        conditions.append(reduce(or_, ranges))
    return reduce(and_, conditions) if conditions else None


def _may_have(selection: Selection, file: FileEntry, known: Mapping[str, Any]) -> bool:
    day = file.partition.get("ingest_date")
    if day is None:
        return True
    if selection.since is not None and day < selection.since.date().isoformat():
        return False
    if selection.until is not None and day > selection.until.date().isoformat():
        return False
    least, most = known.get("min.offset"), known.get("max.offset")
    if not selection.offsets or least is None or most is None:
        return True
    return any(least <= each.last and most >= each.first for each in selection.offsets)
