"""Reads the files of events that notifications name, into the tables of the events from Kafka.

Settings come from GAMELAKE_* variables (docs/settings.md). On SIGTERM it ends after the running batch.
"""

import argparse
from functools import partial
from threading import Event

from gamelake.observability.lineage.flow import FilesDataset, TopicDataset
from gamelake.observability.lineage.ingest import from_files
from gamelake.observability.metrics.files import FilesTelemetry
from gamelake.program import OK, run, stop_event
from gamelake.session import Sessions, own_session
from gamelake.streaming.files.decider import files_fan_out
from gamelake.streaming.files.settings import FilesSettings
from gamelake.streaming.runner import TriggerMode
from jobs.ingest_events import IngestQuery, run_ingest


def main() -> int:
    """Run the query until it is stopped; with --available-now, to the current end of the topic."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--available-now", action="store_true", help="read the files notified until now, then end")
    mode = TriggerMode.AVAILABLE_NOW if parser.parse_args().available_now else TriggerMode.CONTINUOUS
    settings = FilesSettings.from_env()
    reading = settings.reading
    sessions = partial(own_session, reading.stream, reading.lakehouse.location, reading.spark_jars, only_plans=True)
    run_stream(settings, sessions, stop_event(), mode)
    return OK


def run_stream(
    settings: FilesSettings, sessions: Sessions, stop: Event, mode: TriggerMode = TriggerMode.CONTINUOUS
) -> None:
    """Run the query until it is stopped, or has read the topic of notifications.

    Raises:
        GamelakeError: the error that ended the query or prevented its start.
    """
    reading = settings.reading
    notifications = TopicDataset(reading.kafka.bootstrap_servers, reading.topic)
    query = IngestQuery(
        settings=reading,
        reads=from_files(notifications, FilesDataset(settings.landing.uri)),
        schemas_of=settings.subject.removesuffix("-value"),
        batch_function=partial(files_fan_out, settings),
        observers=lambda metrics: (FilesTelemetry(reading.stream, metrics),),
    )
    run_ingest(query, sessions, stop, mode)


if __name__ == "__main__":
    run(main)
