"""Selects and reads the records of a replay, on Spark or in this process, whichever takes less time."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import and_, or_
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, lit

from gamelake.delta.appends import schema_of
from gamelake.delta.file_bounds import bounds_of
from gamelake.delta.log.codec import FileEntry, live_files
from gamelake.delta.tables import open_table
from gamelake.ledger.coordinates import CoordinateRange
from gamelake.model.logs import event_logger
from gamelake.model.naming import QUARANTINE
from gamelake.objects.store import Location
from gamelake.recovery.replay.marks import COORDINATES, MARKED_IN, WHY
from gamelake.recovery.replay.task import ReplayPlan, ReplayReport, ReplayTask
from gamelake.scans.datasets import dataset
from gamelake.session import Sessions
from gamelake.streaming.plan import REPORT_SCHEMA

log = event_logger(__name__)

_decode = msgspec.msgpack.Decoder(ReplayReport).decode
_RECORDS_A_BATCH = 20_000
# Decoded, these are a few hundred MiB, which one process handles in the time that Spark takes to start.
_LOCAL_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Conditions on the records of a table; an empty one selects all.

    Attributes:
        source: the table: bronze, the dead letters or the quarantine.
        reasons: reasons of dead letters; empty for all.
        rules: rules that quarantined the rows; empty for all.
        since: the first Kafka timestamp; None for no bound.
        until: the end of the Kafka timestamps, exclusive; None for no bound.
        coordinates: ranges of the records' coordinates; empty for all.
    """

    source: str
    reasons: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    coordinates: tuple[CoordinateRange, ...] = ()


def column_of(selection: Selection, name: str) -> str:
    """Return the name of a Kafka coordinate's column in the source; the quarantine uses the names of silver."""
    return f"kafka_{name}" if selection.source == QUARANTINE and name in ("partition", "offset") else name


@dataclass(frozen=True, slots=True)
class SparkReader:
    """Reads records and runs the tasks on Spark.

    Attributes:
        spark: the session.
        location: the lakehouse.
    """

    spark: SparkSession
    location: Location

    def reports(self, selection: Selection, plan: ReplayPlan) -> tuple[ReplayReport, ...]:
        """Run the plan on the selected records, and return a report for each task and chunk."""
        return run(self._records(selection, plan.versions), plan)

    def _records(self, selection: Selection, versions: Mapping[str, int]) -> DataFrame:
        """Select the records at fixed versions of the tables, without records that are settled already."""
        found = table(self.spark, self.location, selection.source, versions[selection.source])
        for condition in (*_days(selection), *_conditions(selection, col, lit)):
            found = found.where(condition)
        if selection.source == QUARANTINE:
            found = found.withColumnsRenamed({"kafka_partition": "partition", "kafka_offset": "offset"})
        marks = MARKED_IN.get(selection.source, "")
        if marks in versions:
            settled = table(self.spark, self.location, marks, versions[marks]).select(*COORDINATES)
            found = found.join(settled, list(COORDINATES), "left_anti")
        return found


def run(found: DataFrame, plan: ReplayPlan) -> tuple[ReplayReport, ...]:
    """Run the plan on Spark, on records in the order that tasks expect: by partition, time and offset.

    Args:
        found: records of bronze, dead letters or the quarantine: columns `topic`, `partition`, `offset`,
            `kafka_timestamp`, `value` and, if the source has it, `reason` or `rule`.
        plan: the plan of the tasks.

    Returns:
        A report for each task and chunk.
    """
    why = [col(name) for name in WHY.values() if name in found.columns]
    columns = [col("topic"), col("offset"), col("value"), *why]
    partition, moment = col("partition").cast("int").alias("partition"), col("kafka_timestamp").alias("timestamp")
    tasks = found.sparkSession.sparkContext.defaultParallelism
    spread = found.select(*columns, partition, moment).repartition(tasks, "topic", "partition")
    in_order = spread.sortWithinPartitions("partition", "timestamp", "offset")
    rows = in_order.mapInArrow(ReplayTask(plan), REPORT_SCHEMA).collect()
    return tuple(_decode(bytes(row.report)) for row in rows)


def table(spark: SparkSession, location: Location, name: str, version: int) -> DataFrame:
    """Open a table of the lakehouse at a version, with all its columns."""
    return spark.read.format("delta").option("versionAsOf", version).load(location.child(name))


def _conditions(selection: Selection, field: Callable[[str], Any], literal: Callable[[datetime], Any]) -> list[Any]:
    """Return the conditions of a selection as expressions of Spark or Arrow.

    Args:
        selection: the selection.
        field: returns the expression of a column of the source.
        literal: returns the expression of a time.
    """
    topic, partition, offset = (field(column_of(selection, name)) for name in ("topic", "partition", "offset"))
    chosen = {"reason": selection.reasons, "rule": selection.rules}
    conditions = [field(name).isin(list(values)) for name, values in chosen.items() if values]
    if selection.since is not None:
        conditions.append(field("kafka_timestamp") >= literal(selection.since))
    if selection.until is not None:
        conditions.append(field("kafka_timestamp") < literal(selection.until))
    if selection.coordinates:
        ranges = [
            (topic == each.topic) & (partition == each.partition) & (offset >= each.first) & (offset <= each.last)
            for each in selection.coordinates
        ]
        conditions.append(reduce(or_, ranges))
    return conditions


def _days(selection: Selection) -> Iterator[Column]:
    """Yield conditions on the partitions that Spark must read."""
    # The quarantine is partitioned by the days of events, not of ingestion.
    if selection.source != QUARANTINE and selection.since is not None:
        yield col("ingest_date") >= lit(selection.since.date())
    if selection.source != QUARANTINE and selection.until is not None:
        yield col("ingest_date") <= lit(selection.until.date())


@dataclass(frozen=True, slots=True)
class LocalReader:
    """Reads records and runs one task in this process.

    Attributes:
        location: the lakehouse.
    """

    location: Location

    def bytes(self, selection: Selection, version: int) -> int:
        """Return the size in bytes of the files that a selection has to read, at a version of its source."""
        return sum(file.size for file in self._files(selection, version))

    def reports(self, selection: Selection, plan: ReplayPlan) -> tuple[ReplayReport, ...]:
        """Run the plan on the selected records, and return a report for each task and chunk."""
        found = self._read(selection, plan.versions[selection.source])
        marks = MARKED_IN.get(selection.source, "")
        if marks in plan.versions:
            settled = self._table(marks, plan.versions[marks], list(COORDINATES))
            found = found.join(settled, list(COORDINATES), join_type="left anti")
        batches = _in_order(found).to_batches(max_chunksize=_RECORDS_A_BATCH)
        reports = (report for batch in ReplayTask(plan)(iter(batches)) for report in batch.column(0).to_pylist())
        return tuple(map(_decode, reports))

    def _read(self, selection: Selection, version: int) -> pa.Table:
        schema = schema_of(open_table(self.location, selection.source, version))
        why = [WHY[selection.source]] if selection.source in WHY else []
        rows = dataset(self.location, selection.source, schema, self._files(selection, version))
        columns = {name: pc.field(column_of(selection, name)) for name in (*COORDINATES, "value", *why)}
        conditions = _conditions(selection, pc.field, lambda moment: pa.scalar(moment, pa.timestamp("us", "UTC")))
        return rows.to_table(columns=columns, filter=reduce(and_, conditions) if conditions else None)

    def _table(self, name: str, version: int, columns: list[str]) -> pa.Table:
        handle = open_table(self.location, name, version)
        return dataset(self.location, name, schema_of(handle), live_files(handle)).to_table(columns=columns)

    def _files(self, selection: Selection, version: int) -> list[FileEntry]:
        """List the files that may contain selected records, by their days and offset bounds."""
        handle = open_table(self.location, selection.source, version)
        least, most = bounds_of(pa.table(handle.get_add_actions(flatten=False)), "offset")
        offsets = zip(live_files(handle), least.to_pylist(), most.to_pylist(), strict=True)
        return [file for file, *bounds in offsets if _may_have(selection, file, *bounds)]


@dataclass(frozen=True, slots=True)
class ReaderBySize:
    """Reads small selections in this process, and starts Spark for larger ones.

    Attributes:
        location: the lakehouse.
        sessions: starts a Spark session.
    """

    location: Location
    sessions: Sessions

    def reports(self, selection: Selection, plan: ReplayPlan) -> tuple[ReplayReport, ...]:
        """Run the plan on the selected records, and return a report for each task and chunk."""
        local = LocalReader(self.location)
        size = local.bytes(selection, plan.versions[selection.source])
        if size <= _LOCAL_BYTES:
            return local.reports(selection, plan)
        log.info("source_read_by_spark", table=selection.source, bytes=size)
        with self.sessions() as spark:
            return SparkReader(spark, self.location).reports(selection, plan)


def _in_order(found: pa.Table) -> pa.Table:
    """Sort records as the tasks expect them: by partition, time and offset; the first duplicate counts."""
    found = found.set_column(
        found.schema.get_field_index("partition"), "partition", found["partition"].cast(pa.int32())
    ).rename_columns({"kafka_timestamp": "timestamp"})
    return found.sort_by([(name, "ascending") for name in ("partition", "timestamp", "offset")]).combine_chunks()


def _may_have(selection: Selection, file: FileEntry, least: int | None, most: int | None) -> bool:
    day = file.partition.get("ingest_date")
    if day is None:
        return True
    if selection.since is not None and day < selection.since.date().isoformat():
        return False
    if selection.until is not None and day > selection.until.date().isoformat():
        return False
    if not selection.coordinates or least is None or most is None:
        return True
    return any(least <= each.last and most >= each.first for each in selection.coordinates)
