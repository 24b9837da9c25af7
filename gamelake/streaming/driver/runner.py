"""Runs a streaming query: opens its checkpoint, starts it, and stops it between two batches."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from threading import Event
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from gamelake.contract.games import GamesContract
from gamelake.delta.listing import stream_names
from gamelake.delta.tables import DeltaTables, repartitioned
from gamelake.ledger.manifests import Manifests
from gamelake.ledger.skipped_records import SkippedRecordsOfStream
from gamelake.model.errors import AnotherDriverError, ContractError, SettingsError
from gamelake.model.failpoints import Failpoints
from gamelake.model.logs import event_logger
from gamelake.model.naming import BRONZE_EVENTS, game_of, shuffle_folder
from gamelake.objects.store import Store, require_put_if_absent
from gamelake.quality.rules_in_force import RulesInForce
from gamelake.session import java_causes
from gamelake.streaming.dedup.cross_source import ConcurrentFilesStream, ConcurrentStream
from gamelake.streaming.dedup.window import DedupWindow
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.batch_commits import BatchCommits
from gamelake.streaming.driver.decision import Decider, Parallelism
from gamelake.streaming.driver.flood import FloodBreaker
from gamelake.streaming.driver.observers import BatchObserver
from gamelake.streaming.driver.poison import PoisonAvoidingDecider
from gamelake.streaming.driver.roles import NoMemory, SkippingDecider, StreamMemory
from gamelake.streaming.driver.settings import IngestSettings
from gamelake.streaming.driver.stopping import StoppableBatches, stop_between_batches
from gamelake.streaming.driver.stream import Stream
from gamelake.streaming.kafka.source import SourceTopic, offset_gap
from gamelake.streaming.message_mapping import load_event_contract
from gamelake.streaming.plan import ChunkLimits, DedupPlan, TaskPlan
from gamelake.streaming.rules import RulesLoader
from gamelake.streaming.tasks.table_shuffle import remove_leftovers

log = event_logger(__name__)

_CONCURRENT_WRITE = "org.apache.spark.SparkConcurrentModificationException"
_CONCURRENT_UPDATE = "CONCURRENT_STREAM_LOG_UPDATE"
_POLL_SECONDS = 1
_REMEMBERED_BATCHES = 20

Plan = TypeVar("Plan")


class TriggerMode(StrEnum):
    """The end of the query: at a signal, or at the current end of the topic."""

    CONTINUOUS = "continuous"
    AVAILABLE_NOW = "available_now"


def prepare(
    settings: IngestSettings, store: Store, tables: DeltaTables, *, has_concurrent_stream: bool = True
) -> OpenStream:
    """Finish the commits of the last batch, and open the stream's checkpoint.

    Args:
        settings: of the stream.
        store: the lakehouse.
        tables: of the lakehouse.
        has_concurrent_stream: see `finish_last_batch`; if True, no other stream may read the same topic.

    Raises:
        StartupError: the store, Kafka, a contract or the checkpoint is not usable.
        SettingsError: another stream writes the topic's records to the tables.
        TopicRecreatedError: the topic was deleted and created again.
    """
    require_put_if_absent(store)
    topic = SourceTopic(settings.kafka, settings.topic)
    topic_id = topic.id()
    stream = Stream(store, settings.stream, settings.topic)
    if has_concurrent_stream:
        _require_own_topic(store, stream, settings.topic, topic_id)
    finish_last_batch(stream, tables, has_concurrent_stream=has_concurrent_stream)
    source = OpenStream(stream, stream.open(topic_id), tables, topic)
    # A running driver may have decided another batch since, which a rebuilt checkpoint counts as done.
    _commit_last_manifest(stream, tables)
    return source


def _require_own_topic(store: Store, stream: Stream, topic: str, topic_id: str) -> None:
    for name in stream_names(store):
        # A stream that writes other tables, as live operations do, may read the same topic.
        for manifest in Manifests(store, name).last(1) if name != stream.name else ():
            if manifest.topic_id == topic_id and any(entry.table == BRONZE_EVENTS for entry in manifest.tables):
                raise SettingsError(
                    f"the stream '{name}' writes the records of topic '{topic}' to this lakehouse: by '{stream.name}' "
                    f"each record would become a second row. Set GAMELAKE_STREAM={name}, or another GAMELAKE_TOPIC"
                )


def finish_last_batch(stream: Stream, tables: DeltaTables, *, has_concurrent_stream: bool = True) -> None:
    """Commit the last decided batch to the tables that lack it after a crash.

    No earlier batch can lack commits, except to tables that are held back: these catch up if they accept the batches.

    Args:
        stream: the stream.
        tables: of the lakehouse.
        has_concurrent_stream: True if another stream writes the same tables, so that a settle record may have the last
            decision. Other streams have no access to these records, and must not need it.
    """
    if has_concurrent_stream:
        stream.complete_decision()
    _commit_last_manifest(stream, tables)


def _commit_last_manifest(stream: Stream, tables: DeltaTables) -> None:
    manifest = stream.last_manifest()
    if manifest is not None:
        BatchCommits(stream, tables).commit(manifest, catch_up_seconds=math.inf)


@dataclass(frozen=True, slots=True)
class StreamContext:
    """The state that each stream that writes bronze and silver starts with, whatever its source.

    Attributes:
        plan: of every batch, without the parts that are added for each batch.
        schemas: the columns of the existing tables, by table name.
        rules: the quality rules, which are reloaded when their files change.
        breaker: has counted the newest batches.
    """

    plan: TaskPlan
    schemas: dict[str, pa.Schema]
    rules: RulesInForce
    breaker: FloodBreaker


def stream_context(settings: IngestSettings, source: OpenStream) -> StreamContext:
    """Read the games contract, the columns of the tables, the rules and the newest manifests.

    Raises:
        ContractError: the games contract or a rule is invalid, or does not fit the existing tables.
    """
    contract, store = load_event_contract(settings.games_file), source.stream.store
    _check_partitioning(contract, source.tables)
    plan = TaskPlan(
        lakehouse=settings.lakehouse.location,
        registry_url=settings.registry_url,
        topic=settings.topic,
        contract=contract,
        schema_wait=settings.schema_wait,
        schema_limits=settings.schema_limits,
        chunk=ChunkLimits(records=settings.chunk_records),
    )
    names = [
        folder for layer in ("bronze", "silver", "dead_letters", "quarantine") for folder in store.folders(f"{layer}/")
    ]
    schemas = source.tables.schemas(names)
    breaker = FloodBreaker(settings.flood)
    for manifest in source.stream.manifests.last(_REMEMBERED_BATCHES):
        breaker.count(manifest.records, sum(manifest.dead_letters.values()))
    games = {name: schema for name, schema in schemas.items() if game_of(name)}
    rules = RulesLoader(settings.rules, settings.games_file, contract, store, lambda: games).watch_and_store()
    return StreamContext(plan, schemas, rules, breaker)


def fan_out(
    settings: IngestSettings, source: OpenStream, cores: int, observers: Sequence[BatchObserver] = ()
) -> FanOut[DedupPlan]:
    """Create the batch function of a stream of Kafka records.

    Args:
        settings: of the stream.
        source: the stream, open.
        cores: of all executors.
        observers: are notified of each batch.

    Raises:
        ContractError: the games contract or a rule is invalid, or does not fit the existing tables.
    """
    context, store = stream_context(settings, source), source.stream.store
    files = ConcurrentFilesStream(ConcurrentStream(store, settings.files_stream))
    plan = replace(context.plan, shuffle=shuffle_folder(settings.stream))
    remove_leftovers(store, plan.shuffle)
    parallelism = Parallelism(cores, settings.records_per_task)
    decider = Decider(plan, context.schemas, parallelism, context.rules, files)
    return FanOut(
        source,
        careful_decider(decider, source),
        context.breaker,
        Failpoints(settings.kill),
        _memory(settings, source),
        files,
        observers,
    )


def careful_decider(decider: SkippingDecider[Plan], source: OpenStream) -> PoisonAvoidingDecider[Plan]:
    """Wrap a decider of an open stream, so that it skips records which make tasks fail."""
    stream = source.stream
    SkippedRecordsOfStream(stream.store, stream.name).forget(stream.positions(source.generation))
    return PoisonAvoidingDecider(decider, stream.store, source.generation, source.topic.id)


def _memory(settings: IngestSettings, source: OpenStream) -> StreamMemory[DedupPlan | None]:
    if settings.dedup.is_off:
        return NoMemory()
    window = DedupWindow(source.stream.store, settings.stream, settings.dedup)
    window.resume(source.stream.manifests)
    return window


def _check_partitioning(contract: GamesContract, tables: DeltaTables) -> None:
    for game in contract.games:
        have, wanted = tables.partition_columns(game.table), tuple(column.value for column in game.partition_by)
        if have is not None and have != wanted:
            raise ContractError(repartitioned(game.table, have, wanted))


def start(
    spark: SparkSession, settings: IngestSettings, source: OpenStream, body: FanOut[Any], mode: TriggerMode
) -> StreamingQuery:
    """Start the query on the checkpoint of the stream's generation.

    Args:
        spark: the session of the query.
        settings: of the stream.
        source: the stream, open.
        body: the batch function.
        mode: the end of the query.
    """
    stream = source.topic.stream(spark, settings.max_offsets_per_trigger)
    checkpoint = settings.lakehouse.location.child(source.generation.checkpoint)
    writer = stream.writeStream.queryName(settings.stream).foreachBatch(body).option("checkpointLocation", checkpoint)
    return start_writer(writer, mode, settings.trigger_interval)


def start_writer(writer: DataStreamWriter, mode: TriggerMode, interval: timedelta) -> StreamingQuery:
    """Start a query with the trigger of its mode; `interval` is the shortest time between the starts of two batches."""
    if mode is TriggerMode.AVAILABLE_NOW:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{interval.total_seconds()} seconds").start()


def kafka_error(error: StreamingQueryException) -> Exception:
    """Return the error itself, or an OffsetGapError if Kafka has deleted records before the query read them."""
    return offset_gap(error) or error


def run_until(
    stop: Event,
    query: StreamingQuery,
    body: StoppableBatches,
    on_poll: Callable[[], None] = lambda: None,
    classify: Callable[[StreamingQueryException], Exception] = kafka_error,
) -> None:
    """Wait for the query to end, or stop it between two batches once `stop` is set.

    Args:
        stop: ends the query.
        query: the running query.
        body: the batch function of the query.
        on_poll: called every second, on this thread.
        classify: converts an error of Spark to one of this library, if it knows the cause; else returns it.

    Raises:
        GamelakeError: the error that ended the query.
        Exception: the error of Spark, if its cause is unknown.
    """
    try:
        while not query.awaitTermination(_POLL_SECONDS):
            on_poll()
            if stop.is_set():
                log.info("stream_stopping", action="ends after the running batch")
                stop_between_batches(query, body)
                return
    except StreamingQueryException as error:
        raise body.failure or _another_driver(error) or classify(error) from error


def _another_driver(error: StreamingQueryException) -> AnotherDriverError | None:
    """Return the error for two queries with one checkpoint; None if Spark failed for another reason.

    Spark has two errors for an entry of its logs that exists already: one before the write, and one during it.
    """
    causes = list(java_causes(error))
    if any(each.class_name == _CONCURRENT_WRITE or each.condition == _CONCURRENT_UPDATE for each in causes):
        return AnotherDriverError(
            "another driver of this stream writes its checkpoint: two drivers run. Stop one, and start the job again"
        )
    return None
