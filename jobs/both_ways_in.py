"""Takes events in by both ways in one process, where memory is short: from Kafka, and from files.

Does what `jobs/ingest_events.py` and `jobs/ingest_files.py` do, in one Spark. Settings are theirs (docs/settings.md),
except that each has its metrics at a port of its own, events at GAMELAKE_METRICS_PORT and files at the next one, and
touches a file of its own, GAMELAKE_HEARTBEAT_FILE with a dot and `events` or `files`. SIGTERM ends both after the batch
that runs.

Events go first: files are read once their query runs, and what ends it ends the process, with its exit code. What ends
the query of files stands in the log and in the metrics, and it alone begins anew, after 15 seconds, then 30, and so on
up to 5 minutes.
"""

import argparse
from collections.abc import Callable
from functools import partial
from threading import Event

from gamelake.program import OK, again_and_again, run, stop_event, together
from gamelake.session import SharedSpark
from gamelake.streaming.files.settings import BothWaysInSettings
from jobs import ingest_events, ingest_files

_LOOK_SECONDS = 0.5


def main() -> int:
    """Run both until events' ends or both are stopped."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    settings = BothWaysInSettings.from_env()
    spark = SharedSpark("ingest", settings.events.lakehouse.location, settings.events.spark_jars)
    stop = stop_event()
    running = Event()
    events = partial(ingest_events.keep_up, settings.events, partial(spark.session, "events"), stop, running=running)
    files = partial(ingest_files.keep_up, settings.files, partial(spark.session, "files"), stop)
    together({"events": events, "files": partial(_second, files, running, stop)}, stop)
    spark.stop()
    return OK


def _second(job: Callable[[], None], first: Event, stop: Event) -> None:
    """Run a job once the first one runs, so that its start takes nothing from that one's."""
    while not first.wait(_LOOK_SECONDS):
        if stop.is_set():
            return
    again_and_again(job, stop)


if __name__ == "__main__":
    run(main)
