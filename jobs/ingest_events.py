"""Reads the event topic and fans it out into bronze, one silver table per game, and the dead letters.

Settings come from GAMELAKE_* variables (docs/settings.md). SIGTERM ends it after the batch that runs.
"""

import argparse
from functools import partial
from threading import Event

from gamelake.layers.comments import EventComments
from gamelake.model.games import load_games
from gamelake.observability.lineage.emitter import Emitter, lineage_emitter
from gamelake.observability.lineage.flow import RunKind, TopicDataset
from gamelake.observability.lineage.ingest import IngestLineage, IngestSource, RegisteredVersions, from_kafka
from gamelake.observability.metrics.listener import ProgressListener
from gamelake.observability.metrics.stream import Observed
from gamelake.observability.metrics.watch import observing
from gamelake.program import OK, run, stop_event
from gamelake.quality.daily import QualityTable
from gamelake.schemas.registry import SchemaRegistry
from gamelake.session import Sessions, own_session
from gamelake.storage.store import Store
from gamelake.storage.tables import DeltaTables
from gamelake.streaming.batch import OpenStream
from gamelake.streaming.observers import BatchObservers, updating_quality_table
from gamelake.streaming.runner import TriggerMode, fan_out, prepare, run_until, start
from gamelake.streaming.settings import IngestSettings

_REMEMBERED_BATCHES = 20


def main() -> int:
    """Run the query until it is stopped, or until the topic's present end with --available-now."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--available-now", action="store_true", help="take what the topic holds now, then end")
    mode = TriggerMode.AVAILABLE_NOW if parser.parse_args().available_now else TriggerMode.CONTINUOUS
    settings = IngestSettings.from_env()
    sessions = partial(own_session, settings.stream, settings.lakehouse.location, settings.spark_jars)
    run_stream(settings, sessions, stop_event(), mode)
    return OK


def run_stream(
    settings: IngestSettings,
    sessions: Sessions,
    stop: Event,
    mode: TriggerMode = TriggerMode.CONTINUOUS,
    running: Event | None = None,
) -> None:
    """Run the query until it is stopped, or has come to where it is asked to end; `running` is set once it runs.

    Raises:
        GamelakeError: what ended the query, or that it may not start.
    """
    store = Store(settings.lakehouse.location)
    comments = EventComments(load_games(settings.games_file), store)
    with DeltaTables(settings.lakehouse.location, comments) as tables:
        source = prepare(settings, store, tables)
        observed = observed_query(settings, source)
        versions = RegisteredVersions(SchemaRegistry(settings.registry_url), settings.topic)
        with (
            observing(settings.telemetry, observed, settings.kafka) as telemetry,
            lineage_emitter(settings.lineage, "ingest_events", settings.lakehouse.location, versions) as told,
            updating_quality_table(QualityTable(store, settings.stream, comments)) as quality,
            sessions() as spark,
        ):
            if settings.telemetry.are_wanted:
                spark.streams.addListener(ProgressListener(telemetry))
            body = fan_out(settings, source, store, spark.sparkContext.defaultParallelism)
            topic = TopicDataset(settings.kafka.bootstrap_servers, settings.topic)
            lineage = lineage_of(from_kafka(topic), source, told, mode)
            lineage.begin(observed.recent)
            body.observer = BatchObservers((telemetry, lineage, quality))
            query = start(spark, settings, source, body, mode)
            if running is not None:
                running.set()
            run_until(stop, query, body)


def lineage_of(job: IngestSource, source: OpenStream, told: Emitter, mode: TriggerMode) -> IngestLineage:
    """What a stream that fans out tells of its lineage."""
    kind = RunKind.BATCH if mode is TriggerMode.AVAILABLE_NOW else RunKind.STREAMING
    return IngestLineage(told, job, source.generation.query_id, kind)


def observed_query(settings: IngestSettings, source: OpenStream) -> Observed:
    """What the telemetry of a stream has to begin with."""
    return Observed(
        query=settings.stream,
        topic=settings.topic,
        trigger_seconds=settings.trigger_interval.total_seconds(),
        positions=source.stream.positions(source.generation),
        recent=tuple(source.stream.manifests.last(_REMEMBERED_BATCHES)),
    )


if __name__ == "__main__":
    run(main)
