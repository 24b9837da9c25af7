"""Ingests events from both sources, Kafka and files, in one process, to save memory.

Does what `jobs/ingest_events.py` and `jobs/ingest_files.py` do, with one Spark application. It reads the settings of
both (docs/settings.md), with two exceptions. Each query serves its metrics on its own port: events on
GAMELAKE_METRICS_PORT, files on the next one. Each query touches its own heartbeat file: GAMELAKE_HEARTBEAT_FILE
followed by `.events` or `.files`. On SIGTERM both queries end after the running batch.

Kafka's events have priority: the query of files starts once the query of events runs. If the query of events fails, the
process ends with its exit code. If the query of files fails, the error is logged and counted, and only that query
restarts: after 15 seconds, then 30, and so on up to 5 minutes.
"""

from collections.abc import Callable
from functools import partial
from threading import Event

from gamelake.command import command_parser
from gamelake.program import OK, run, run_together, run_with_restarts, stop_event
from gamelake.session import SharedSpark
from gamelake.streaming.files.settings import AllSourcesSettings
from jobs import ingest_events, ingest_files

_POLL_SECONDS = 0.5


def main() -> int:
    """Run both queries until they are stopped or the query of events ends."""
    command_parser(__doc__).parse_args()
    settings = AllSourcesSettings.from_env()
    spark = SharedSpark("ingest", settings.events.lakehouse.location, settings.events.spark_jars, only_plans=True)
    stop = stop_event()
    running = Event()
    read_events, read_files = ingest_events.stream_job(settings.events), ingest_files.stream_job(settings.files)
    events = partial(read_events.run, partial(spark.session, "events"), stop, running=running)
    files = partial(read_files.run, partial(spark.session, "files"), stop)
    run_together({"events": events, "files": partial(_second, files, running, stop)}, stop)
    spark.stop()
    return OK


def _second(job: Callable[[], None], first: Event, stop: Event) -> None:
    """Run a job once the first one runs, so that its start does not delay the first one."""
    while not first.wait(_POLL_SECONDS):
        if stop.is_set():
            return
    run_with_restarts(job, stop)


if __name__ == "__main__":
    run(main)
