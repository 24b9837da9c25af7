"""Watches a folder and tells Kafka of each file that is written there, until it is told to stop.

What was there before it started, and what came while it was away, is not told: `jobs.reconcile_files` finds that.
"""

import argparse
import logging
from pathlib import Path

from confluent_kafka import Producer

from gamelake.program import OK, run, stop_event
from gamelake.streaming.files.changes import publish
from services.notifier.folder import Folder

log = logging.getLogger("services.notifier")


def main() -> int:
    """Watch until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder to watch; it is made if it is not there")
    parser.add_argument("--bootstrap-servers", required=True, help="where Kafka is")
    parser.add_argument("--topic", default="files.notifications", help="where to tell of files (%(default)s)")
    options = parser.parse_args()
    producer = Producer({"bootstrap.servers": options.bootstrap_servers, "acks": "all", "enable.idempotence": True})
    folder, stop = Folder(options.folder), stop_event()
    log.info("watching %s", options.folder)
    for changes in folder.changes(stop):
        publish(producer, options.topic, changes)
    return OK


if __name__ == "__main__":
    run(main)
