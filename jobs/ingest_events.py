"""Reads the event topic into bronze, one silver table per game, and the dead letters.

Settings come from GAMELAKE_* variables (docs/settings.md). On SIGTERM it ends after the running batch.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event

from prometheus_client import CollectorRegistry

from gamelake.layers.comments import EventComments
from gamelake.model.games import load_games
from gamelake.observability.lineage.emitter import lineage_emitter
from gamelake.observability.lineage.flow import RunKind, TopicDataset
from gamelake.observability.lineage.ingest import IngestLineage, IngestSource, RegisteredVersions, from_kafka
from gamelake.observability.metrics.endpoint import registry_of_process
from gamelake.observability.metrics.listener import ProgressListener
from gamelake.observability.metrics.stream import Observed
from gamelake.observability.metrics.watch import observing
from gamelake.observability.traces.batches import tracing_batches
from gamelake.program import OK, run, stop_event
from gamelake.quality.daily import QualityTable
from gamelake.schemas.registry import SchemaRegistry
from gamelake.session import Sessions, own_session
from gamelake.storage.store import Store
from gamelake.storage.tables import DeltaTables
from gamelake.streaming.batch import FanOut, OpenStream
from gamelake.streaming.observers import BatchObserver, BatchObservers, updating_quality_table
from gamelake.streaming.plan import DedupPlan
from gamelake.streaming.runner import TriggerMode, fan_out, prepare, run_until, start
from gamelake.streaming.settings import IngestSettings

_RECENT_BATCHES = 20


def main() -> int:
    """Run the query until it is stopped; with --available-now, to the current end of the topic."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--available-now", action="store_true", help="read to the current end of the topic, then end")
    mode = TriggerMode.AVAILABLE_NOW if parser.parse_args().available_now else TriggerMode.CONTINUOUS
    settings = IngestSettings.from_env()
    sessions = partial(own_session, settings.stream, settings.lakehouse.location, settings.spark_jars, only_plans=True)
    run_stream(settings, sessions, stop_event(), mode)
    return OK


def run_stream(
    settings: IngestSettings,
    sessions: Sessions,
    stop: Event,
    mode: TriggerMode = TriggerMode.CONTINUOUS,
    running: Event | None = None,
) -> None:
    """Run the query until it is stopped, or has read the topic; `running` is set once it runs.

    Raises:
        GamelakeError: the error that ended the query or prevented its start.
    """
    query = IngestQuery(
        settings=settings,
        reads=from_kafka(TopicDataset(settings.kafka.bootstrap_servers, settings.topic)),
        schemas_of=settings.topic,
        batch_function=partial(fan_out, settings),
    )
    run_ingest(query, sessions, stop, mode, running)


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestQuery:
    """The parts in which ingest queries differ.

    Attributes:
        reads: the name of the job and its inputs, for lineage.
        schemas_of: the topic whose registered schemas the events have.
        batch_function: makes the batch function of an open stream, for a number of cores.
        observers: more observers, with metrics in a registry.
    """

    settings: IngestSettings
    reads: IngestSource
    schemas_of: str
    batch_function: Callable[[OpenStream, Store, int], FanOut[DedupPlan]]
    observers: Callable[[CollectorRegistry], Sequence[BatchObserver]] = lambda registry: ()


def run_ingest(
    query: IngestQuery, sessions: Sessions, stop: Event, mode: TriggerMode, running: Event | None = None
) -> None:
    """Run an ingest query with its telemetry and lineage until it ends; `running` is set once it runs.

    Raises:
        GamelakeError: the error that ended the query or prevented its start.
    """
    settings = query.settings
    location = settings.lakehouse.location
    store = Store(location)
    comments = EventComments(load_games(settings.games_file), store)
    with DeltaTables(location, comments) as tables:
        source = prepare(settings, store, tables)
        observed = _observed(settings, source)
        versions = RegisteredVersions(SchemaRegistry(settings.registry_url), query.schemas_of)
        metrics = registry_of_process()
        with (
            observing(settings.telemetry, observed, settings.kafka, metrics) as telemetry,
            lineage_emitter(settings.lineage, query.reads.name, location, versions) as emitter,
            updating_quality_table(QualityTable(store, settings.stream, comments)) as quality,
            tracing_batches(settings.traces, store, settings.stream) as tracer,
            sessions() as spark,
        ):
            if settings.telemetry.are_wanted:
                spark.streams.addListener(ProgressListener(telemetry))
            body = query.batch_function(source, store, spark.sparkContext.defaultParallelism)
            kind = RunKind.BATCH if mode is TriggerMode.AVAILABLE_NOW else RunKind.STREAMING
            lineage = IngestLineage(emitter, query.reads, source.generation.query_id, kind)
            lineage.begin(observed.recent)
            body.observer = BatchObservers((telemetry, *query.observers(metrics), lineage, quality, tracer))
            started = start(spark, settings, source, body, mode)
            if running is not None:
                running.set()
            run_until(stop, started, body)


def _observed(settings: IngestSettings, source: OpenStream) -> Observed:
    return Observed(
        query=settings.stream,
        topic=settings.topic,
        trigger_seconds=settings.trigger_interval.total_seconds(),
        positions=source.stream.positions(source.generation),
        recent=tuple(source.stream.manifests.last(_RECENT_BATCHES)),
    )


if __name__ == "__main__":
    run(main)
