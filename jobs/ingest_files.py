"""Reads the files of events that notifications name, into the tables of the events from Kafka.

Settings come from GAMELAKE_* variables (docs/settings.md). On SIGTERM it ends after the running batch.
"""

from functools import partial

from gamelake.observability.lineage.flow import FilesDataset, TopicDataset
from gamelake.observability.lineage.ingest import from_files
from gamelake.observability.metrics.files import FilesTelemetry
from gamelake.observability.stream_job import StreamJob, run_program
from gamelake.program import run
from gamelake.streaming.files.decider import files_fan_out
from gamelake.streaming.files.settings import FilesSettings
from jobs.ingest_events import IngestQuery


def main() -> int:
    """Run the query until it is stopped; with --available-now, to the current end of the topic."""
    return run_program(__doc__, lambda: stream_job(FilesSettings.from_env()))


def stream_job(settings: FilesSettings) -> StreamJob:
    """Return the job that reads the topic of notifications."""
    reading = settings.reading
    notifications = TopicDataset(reading.kafka.bootstrap_servers, reading.topic)
    return IngestQuery(
        settings=reading,
        reads=from_files(notifications, FilesDataset(settings.landing.uri)),
        schemas_of=settings.subject.removesuffix("-value"),
        batch_function=partial(files_fan_out, settings),
        observers=lambda metrics: (FilesTelemetry(reading.stream, metrics),),
    ).job()


if __name__ == "__main__":
    run(main)
