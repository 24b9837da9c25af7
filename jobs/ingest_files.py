"""Reads the files of events that notifications name, into the tables that Kafka's events are in.

Settings come from GAMELAKE_* variables (docs/settings.md). SIGTERM ends it after the batch that runs.
"""

import argparse
from functools import partial
from threading import Event

from gamelake.layers.comments import EventComments
from gamelake.model.games import load_games
from gamelake.observability.lineage.emitter import lineage_emitter
from gamelake.observability.lineage.flow import FilesDataset, TopicDataset
from gamelake.observability.lineage.ingest import RegisteredVersions, from_files
from gamelake.observability.metrics.endpoint import registry_of_process
from gamelake.observability.metrics.files import FilesTelemetry
from gamelake.observability.metrics.listener import ProgressListener
from gamelake.observability.metrics.watch import observing
from gamelake.program import OK, run, stop_event
from gamelake.quality.daily import QualityTable
from gamelake.schemas.registry import SchemaRegistry
from gamelake.session import Sessions, own_session
from gamelake.storage.store import Store
from gamelake.storage.tables import DeltaTables
from gamelake.streaming.files.decider import files_fan_out
from gamelake.streaming.files.settings import FilesSettings
from gamelake.streaming.observers import BatchObservers, updating_quality_table
from gamelake.streaming.runner import TriggerMode, prepare, run_until, start
from jobs.ingest_events import lineage_of, observed_query


def main() -> int:
    """Run the query until it is stopped, or until the topic's present end with --available-now."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--available-now", action="store_true", help="take what has been notified now, then end")
    mode = TriggerMode.AVAILABLE_NOW if parser.parse_args().available_now else TriggerMode.CONTINUOUS
    settings = FilesSettings.from_env()
    reading = settings.reading
    sessions = partial(own_session, reading.stream, reading.lakehouse.location, reading.spark_jars)
    run_stream(settings, sessions, stop_event(), mode)
    return OK


def run_stream(
    settings: FilesSettings, sessions: Sessions, stop: Event, mode: TriggerMode = TriggerMode.CONTINUOUS
) -> None:
    """Run the query until it is stopped, or has come to where it is asked to end.

    Raises:
        GamelakeError: what ended the query, or that it may not start.
    """
    reading = settings.reading
    store = Store(reading.lakehouse.location)
    comments = EventComments(load_games(reading.games_file), store)
    with DeltaTables(reading.lakehouse.location, comments) as tables:
        source = prepare(reading, store, tables)
        observed = observed_query(reading, source)
        versions = RegisteredVersions(SchemaRegistry(reading.registry_url), settings.subject.removesuffix("-value"))
        registry = registry_of_process()
        with (
            observing(reading.telemetry, observed, reading.kafka, registry) as telemetry,
            lineage_emitter(reading.lineage, "ingest_files", reading.lakehouse.location, versions) as told,
            updating_quality_table(QualityTable(store, reading.stream, comments)) as quality,
            sessions() as spark,
        ):
            if reading.telemetry.are_wanted:
                spark.streams.addListener(ProgressListener(telemetry))
            body = files_fan_out(settings, source, store, spark.sparkContext.defaultParallelism)
            notifications = TopicDataset(reading.kafka.bootstrap_servers, reading.topic)
            job = from_files(notifications, FilesDataset(settings.landing.uri))
            lineage = lineage_of(job, source, told, mode)
            lineage.begin(observed.recent)
            body.observer = BatchObservers((telemetry, FilesTelemetry(reading.stream, registry), lineage, quality))
            run_until(stop, start(spark, reading, source, body, mode), body)


if __name__ == "__main__":
    run(main)
