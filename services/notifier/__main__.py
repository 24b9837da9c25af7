"""Watches a folder and sends a notification to Kafka for each file that is written there, until it is stopped.

It sends none for files that were written while it was not running: `jobs.reconcile_files` finds those.
"""

from pathlib import Path

from confluent_kafka import Producer

from gamelake.command import command_parser
from gamelake.model.logs import event_logger
from gamelake.program import OK, run, stop_event
from gamelake.streaming.files.arrivals.changes import publish
from services.notifier.folder import Folder

log = event_logger("services.notifier")


def main() -> int:
    """Watch until SIGTERM."""
    parser = command_parser(__doc__)
    parser.add_argument("folder", type=Path, help="the folder to watch; it is created if it is missing")
    parser.add_argument("--bootstrap-servers", required=True, help="addresses of Kafka")
    parser.add_argument("--topic", default="files.notifications", help="topic of the notifications (%(default)s)")
    options = parser.parse_args()
    producer = Producer({"bootstrap.servers": options.bootstrap_servers, "acks": "all", "enable.idempotence": True})
    folder, stop = Folder(options.folder), stop_event()
    log.info("folder_watched", path=options.folder)
    for changes in folder.changes(stop):
        publish(producer, options.topic, changes)
    return OK


if __name__ == "__main__":
    run(main)
