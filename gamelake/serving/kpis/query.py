"""The running KPI query: its checks before the start, its one checkpoint, its end between two batches."""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from threading import Event
from typing import Any

from deltalake.exceptions import TableNotFoundError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 # the name that everybody gives it
from pyspark.sql.streaming.query import StreamingQuery

from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import SILVER_EVENTS
from gamelake.serving.kpis.batch import KpiBatches, kpi_tables, spark_error
from gamelake.serving.kpis.definitions import ARRIVAL, ARRIVED, HOUR, OCCURRED, SESSION
from gamelake.serving.kpis.generations import (
    FOLDER,
    KpiGeneration,
    KpiGenerations,
    SourceChangedError,
    SourceFilesGoneError,
    SourceRevisedError,
)
from gamelake.serving.kpis.settings import KpiSettings
from gamelake.serving.kpis.source import SourceLog
from gamelake.storage.leases import Lease
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table
from gamelake.streaming import runner
from gamelake.streaming.runner import TriggerMode, start_writer, stop_between_batches

_WINDOW = "1 hour"
# A window that no watermark reaches: arrivals are never late, and their own watermark never holds the other one back.
_NEVER_CLOSED = "TIMESTAMP '9999-01-01 00:00:00'"
_HAPPENED = f"""array(
  named_struct('closes', at, 'facet', '{HOUR}', 'a', platform, 'b', app_version),
  named_struct('closes', at, 'facet', '{SESSION}', 'a', gamer_id, 'b', session_id))"""
_ARRIVALS = f"""array(named_struct(
  'closes', {_NEVER_CLOSED}, 'facet', '{ARRIVAL}', 'a', CAST(NULL AS STRING), 'b', CAST(NULL AS STRING)))"""
_MEASURES: Mapping[str, str] = {
    "events": "count(*)",
    "purchases": "count_if(event_name = 'purchase')",
    # A sum of floating-point numbers would depend on their order.
    "bookings": "coalesce(sum(try_cast(amount AS DECIMAL(18, 6))), CAST(0 AS DECIMAL(28, 6)))",
    "first_event": "min(at)",
    "last_event": "max(at)",
}


def facts(events: DataFrame, watermark: timedelta) -> DataFrame:
    """The facts whose counts have changed, each with its count since its hour began; for output mode update."""
    placed = events.select(
        F.expr(OCCURRED).alias("at"),
        F.expr(f"({ARRIVED}) IS NULL").alias("is_undated"),
        *("event_name", "game_name", "amount", "platform", "app_version", "gamer_id", "session_id"),
    )
    delay = f"{int(watermark.total_seconds())} seconds"
    # The clock of an event whose arrival is unknown may be days ahead: it is counted with the arrivals, whose watermark
    # moves nothing, and closes no hour of another event.
    happened = _spread(placed.where("NOT is_undated"), _HAPPENED).withWatermark("closes", delay)
    undated = f"IF(is_undated, concat({_ARRIVALS}, {_HAPPENED}), {_ARRIVALS})"
    arrived = _spread(placed, undated).withWatermark("closes", "0 seconds")
    keys = ("hour", "facet", "game_name", "a", "b")
    measures = (F.expr(sql).alias(name) for name, sql in _MEASURES.items())
    counted = happened.unionByName(arrived).groupBy(F.window("closes", _WINDOW), *keys).agg(*measures)
    return counted.drop("window")


def _spread(placed: DataFrame, facets: str) -> DataFrame:
    """Each event once for each facet, with the moment that its window is found by (`closes`)."""
    hour = F.date_trunc("hour", "at").alias("hour")
    return placed.select(hour, "at", "event_name", "game_name", "amount", F.inline(F.expr(facets)))


QUERY = "kpis"
_STATE = "spark.sql.streaming.stateStore"
_STATE_STORE = {
    f"{_STATE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
    # All state stores of a process share one cache, so that their memory does not grow with their number.
    f"{_STATE}.rocksdb.boundedMemoryUsage": "true",
    f"{_STATE}.rocksdb.maxMemoryUsageMB": "128",
    # A pseudonym stays in a checkpoint for no longer than it must; Spark's default is 100 batches.
    "spark.sql.streaming.minBatchesToRetain": "10",
    # A batch without events would only close hours, which the next one does as well.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
}
_SOURCE_POLL_SECONDS = 2


class KpiStart(StrEnum):
    """Where the query begins."""

    WHERE_IT_STOPPED = "where_it_stopped"
    ANEW = "anew"


def driver_lease(store: Store) -> Lease:
    """The right to run the query: one checkpoint has one driver."""
    return Lease(store, f"{FOLDER}/driver", "the KPI query")


def wait_for_source(store: Store, stop: Event, mark_alive: Callable[[], None]) -> str | None:
    """Wait for the first events, and say so; gives silver's table id, None if stopped before."""
    while not stop.is_set():
        try:
            return str(open_table(store.location, SILVER_EVENTS).metadata().id)
        except TableNotFoundError:
            mark_alive()
            stop.wait(_SOURCE_POLL_SECONDS)
    return None


def prepare(
    settings: KpiSettings, store: Store, source_id: str, beginning: KpiStart
) -> tuple[KpiGeneration, SourceLog]:
    """Find the generation to run, and see that silver has only been appended to since it ran last.

    Raises:
        StartupError: the checkpoint or a KPI table is not as it must be.
        SourceRevisedError: silver was restored or replayed into; beginning anew counts what it holds now.
        SourceChangedError: silver was changed otherwise.
    """
    generations = KpiGenerations(store)
    if beginning is KpiStart.ANEW:
        generation = generations.add(source_id, settings.partitions, "a person asked for it")
    else:
        generation = generations.current(source_id, settings.partitions)
    source = SourceLog(store, generation)
    source.check_is_whole()
    return generation, source


def batches(
    settings: KpiSettings, store: Store, generation: KpiGeneration, source: SourceLog, lease: Lease
) -> KpiBatches:
    """The batch function.

    Raises:
        KpiTableError: another writer has written into a KPI table.
    """
    tables = kpi_tables(store, generation)
    for table in tables.values():
        table.open()
    body = KpiBatches(tables, settings.exact, source, lease)
    body.failpoints = Failpoints(settings.kill)
    return body


def start(
    spark: SparkSession, settings: KpiSettings, generation: KpiGeneration, body: KpiBatches, mode: TriggerMode
) -> StreamingQuery:
    """Start the query on its generation's checkpoint."""
    for name, value in _STATE_STORE.items():
        spark.conf.set(name, value)
    spark.conf.set("spark.sql.shuffle.partitions", str(generation.partitions))
    location = settings.lakehouse.location
    events = (
        spark.readStream.format("delta")
        .option("skipChangeCommits", "true")
        .option("maxBytesPerTrigger", str(settings.max_bytes_per_trigger))
        .load(location.child(SILVER_EVENTS))
    )
    writer = facts(events, settings.watermark).writeStream.queryName(QUERY).outputMode("update").foreachBatch(body)
    writer = writer.option("checkpointLocation", location.child(generation.checkpoint))
    return start_writer(writer, mode, settings.trigger_interval)


def run_until(stop: Event, query: StreamingQuery, body: KpiBatches, source: SourceLog) -> None:
    """Wait for the query to end, or stop it between two batches once `stop` is set or its source has changed.

    Raises:
        GamelakeError: the error that ended the query.
        SourceRevisedError: rows of the source were restored, replayed, or erased and purged before they were counted.
        SourceChangedError: rows of the source were deleted otherwise.
    """

    def follow() -> None:
        try:
            source.taken(taken_version(query.lastProgress))
            # Now, and not with the next batch: a restore alone brings none.
            source.follow()
        except SourceChangedError:
            stop_between_batches(query, body)
            raise

    try:
        runner.run_until(stop, query, body, follow, spark_error)
    except SourceFilesGoneError as error:
        erasure = source.erased_unread()
        if erasure is None:
            raise
        # The rows of other players in such a file are in the file that replaced it, which the query passes over.
        raise SourceRevisedError(
            f"the erasure in version {erasure} of {SILVER_EVENTS} purged files that were yet to be counted"
        ) from error


def taken_version(progress: Mapping[str, Any] | None) -> int:
    """The version of silver up to which the batch of a progress took everything, -1 if that is not said."""
    if progress is None:
        return -1
    end = progress["sources"][0]["endOffset"]
    end = json.loads(end) if isinstance(end, str) else end
    # Index -1 is a version's beginning: all before it is done, and of it nothing.
    return -1 if not end or end["isStartingVersion"] else int(end["reservoirVersion"]) - 1
