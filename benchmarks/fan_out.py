"""Gamelake's own approach: the ingest job's classes on a new lakehouse, until the topic's present end.

With Spark's own deduplication as a variant: a stateful operator before the fan-out, keyed by game and event id.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from threading import Event

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.background_compaction import background_compaction
from benchmarks.decoding import process_decoder
from benchmarks.fan_out_alone import GameTablesTopic
from benchmarks.spark import FrameRecords, trigger_seconds, warm_session
from benchmarks.stopwatch import Stopwatch
from benchmarks.traffic import write_contract, write_rules
from benchmarks.workload import Approach, ApproachResult, Workload, check_records, job_settings
from gamelake.layers.bronze import RECORD_SCHEMA
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import BatchManifest
from gamelake.model.logs import LogEvent
from gamelake.model.naming import SILVER_EVENTS, game_of
from gamelake.objects.store import Location, Store
from gamelake.streaming.dedup.window import DedupLimits
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.observers import BatchSummary
from gamelake.streaming.driver.runner import TriggerMode, fan_out, prepare, run_until, start
from gamelake.streaming.driver.settings import IngestSettings
from gamelake.streaming.kafka.batch_records import BatchRecords
from gamelake.streaming.kafka.source import PlannedOffsets, SourceTopic
from gamelake.streaming.plan import DedupPlan

NO_DEDUP = DedupLimits(window=timedelta(0))
_BATCH_LOG = "gamelake.streaming.driver.batch"
_BATCH_COMMITTED = "batch_committed"
_WINDOW = "10 minutes"
_HEADERS = "array<struct<key: string, value: binary>>"
_RECORD = f"key binary, value binary, partition int, offset long, timestamp timestamp, headers {_HEADERS}"
_KEY = ("game_name", "event_id")
_STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class BatchLogHandler(logging.Handler):
    """Collects the batches that the job logs."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.batches: list[BatchSummary] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take the batch of a log line, if it reports one as committed."""
        event = record.msg
        if isinstance(event, LogEvent) and event.name == _BATCH_COMMITTED:
            self.batches.append(msgspec.convert(event.fields, BatchSummary))

    def __enter__(self) -> "BatchLogHandler":
        """Add the handler."""
        logger = logging.getLogger(_BATCH_LOG)
        logger.setLevel(logging.INFO)
        logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the handler."""
        logging.getLogger(_BATCH_LOG).removeHandler(self)


def batch_of(line: str) -> BatchSummary | None:
    """Parse a line of the job's log, in the format `json`; None if it is not the line of a committed batch."""
    if f'"event": "{_BATCH_COMMITTED}"' not in line:
        return None
    return msgspec.json.decode(line[line.index("{") :], type=BatchSummary)


class Dedup(StrEnum):
    """The way in which duplicate events are removed."""

    BY_WINDOW = "by window"
    NONE = "none"
    BY_SPARK = "by Spark"


def fan_out_into(tables: int, dedup: Dedup = Dedup.BY_WINDOW) -> Approach:
    """The fan-out into `tables` game tables, in addition to bronze and silver/events."""
    topic = FrameTopic if dedup is Dedup.BY_SPARK else SourceTopic
    return partial(_fan_out, tables=tables, dedup=dedup, topic=topic)


def fan_out_during_compaction(workload: Workload) -> ApproachResult:
    """The fan-out into 30 game tables during a compaction of small files."""
    with background_compaction(workload.directory / "compaction"):
        return _fan_out(workload, tables=30, dedup=Dedup.BY_WINDOW)


def fan_out_with_rules(workload: Workload) -> ApproachResult:
    """The fan-out into 30 game tables, with 20 rules for each of them."""
    return _fan_out(workload, tables=30, dedup=Dedup.BY_WINDOW, rules=write_rules(workload.directory, 30))


def fan_out_alone(workload: Workload) -> ApproachResult:
    """The fan-out into one game table, without bronze and silver/events."""
    return _fan_out(workload, tables=1, dedup=Dedup.BY_WINDOW, topic=GameTablesTopic)


def _fan_out(
    workload: Workload,
    *,
    tables: int,
    dedup: Dedup,
    rules: Path | None = None,
    topic: type[SourceTopic] = SourceTopic,
) -> ApproachResult:
    settings = replace(job_settings(workload, write_contract(workload.directory, tables)), rules=rules)
    if dedup is not Dedup.BY_WINDOW:
        settings = replace(settings, dedup=NO_DEDUP)
    spark = warm_session(workload.spark_jars)
    store = Store(settings.lakehouse.location)
    with (
        stream_tables(settings.lakehouse.location) as delta_tables,
        BatchLogHandler() as log,
    ):
        source = prepare(settings, store, delta_tables)
        source = replace(source, topic=topic(settings.kafka, settings.topic))
        body = fan_out(settings, source, spark.sparkContext.defaultParallelism)
        watch = Stopwatch.start(workload.kafka_pid)
        begin = start_deduplicated if dedup is Dedup.BY_SPARK else start
        query = begin(spark, settings, source, body, TriggerMode.AVAILABLE_NOW)
        run_until(Event(), query, body)
        lap = watch.stop()
    manifests = manifests_of(source)
    check_records(f"the fan-out into {tables} tables", _game_rows(manifests), workload.records)
    if topic is not GameTablesTopic:
        check_records("the fan-out into silver/events", _silver_rows(manifests), workload.records)
    return ApproachResult(
        records=workload.records,
        lap=lap,
        trigger_seconds=trigger_seconds(query),
        batches=tuple(log.batches),
        files=sum(len(entry.files) for manifest in manifests for entry in manifest.tables),
        game_table_bytes=_game_table_bytes(manifests),
    )


def manifests_of(source: OpenStream) -> list[BatchManifest]:
    """The manifests of all batches of a stream."""
    manifests = source.stream.manifests
    return manifests.last(len(manifests.batches()))


def _game_rows(manifests: list[BatchManifest]) -> int:
    entries = (entry for manifest in manifests for entry in manifest.tables if game_of(entry.table))
    return sum(file.rows for entry in entries for file in entry.files)


def _silver_rows(manifests: list[BatchManifest]) -> int:
    return sum(manifest.rows_in(SILVER_EVENTS) for manifest in manifests)


def _game_table_bytes(manifests: list[BatchManifest]) -> int:
    entries = (entry for manifest in manifests for entry in manifest.tables if game_of(entry.table))
    return sum(file.size for entry in entries for file in entry.files)


class FrameTopic(SourceTopic):
    """A topic whose records Spark's source reads."""

    def batch(self, planning: DataFrame, planned: PlannedOffsets) -> BatchRecords:
        """The rows that Spark has read."""
        del planned
        return FrameRecords(planning)


@dataclass(frozen=True, slots=True)
class IdentifyTask:
    """Adds game and event id to each record; Spark cannot read them from a Protobuf value."""

    registry_url: str
    lakehouse: Location

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The records, with the columns `game_name` and `event_id`."""
        for batch in batches:
            decoder = process_decoder(self.registry_url, self.lakehouse)
            groups = decoder.decode(batch.column("value")).groups
            rows = pa.concat_arrays([pa.array(group.rows) for group in groups])
            keys = [pa.concat_arrays([group.columns.column(name) for group in groups]) for name in _KEY]
            names = [*batch.schema.names, *_KEY]
            yield pa.RecordBatch.from_arrays([*batch.take(rows).columns, *keys], names=names)


def start_deduplicated(
    spark: SparkSession, settings: IngestSettings, source: OpenStream, body: FanOut[DedupPlan], _mode: TriggerMode
) -> StreamingQuery:
    """Start the fan-out's query with Spark's deduplication in front of it, until the topic's present end.

    `source.topic` is a `FrameTopic`.
    """
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _STATE_STORE)
    spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    task = IdentifyTask(settings.registry_url, settings.lakehouse.location)
    planning = source.topic.stream(spark, settings.max_offsets_per_trigger)
    # The source of a query that only plans has no headers, and neither have the benchmark's records.
    records = planning.withColumn("headers", lit(None).cast(_HEADERS)).select(*RECORD_SCHEMA.names)
    checkpoint = settings.lakehouse.location.child(source.generation.checkpoint)
    writer = _deduplicated(records, task).writeStream.foreachBatch(body).option("checkpointLocation", checkpoint)
    return writer.trigger(availableNow=True).start()


def _deduplicated(records: DataFrame, task: IdentifyTask) -> DataFrame:
    identified = records.mapInArrow(task, f"{_RECORD}, game_name string, event_id string")
    unique = identified.withWatermark("timestamp", _WINDOW).dropDuplicatesWithinWatermark([*_KEY])
    return unique.drop(*_KEY)
