"""Lists the bucket once, and sends notifications of files that have had none.

The job that reads files then reads them like all others, each once. Settings come from GAMELAKE_* variables
(docs/settings.md).
"""

from datetime import UTC, datetime, timedelta

from confluent_kafka import Producer

from gamelake.command import command_parser, print_result
from gamelake.program import run
from gamelake.streaming.files.arrivals.changes import publish
from gamelake.streaming.files.arrivals.landing import LandingBucket
from gamelake.streaming.files.arrivals.reconciliation import missing_notifications
from gamelake.streaming.files.settings import FilesSettings


def main() -> int:
    """List, compare, and send notifications; print the counts as JSON."""
    parser = command_parser(__doc__)
    parser.add_argument("--dry-run", action="store_true", help="send no notifications, only print the counts")
    parser.add_argument(
        "--older-than-minutes",
        type=float,
        default=15,
        help="skip younger files, as their notifications may still arrive (%(default)s)",
    )
    options = parser.parse_args()
    settings = FilesSettings.from_env()
    reading = settings.reading
    patience = timedelta(minutes=options.older_than_minutes)
    found = missing_notifications(
        reading.lakehouse.location, LandingBucket(settings.landing), settings.prefix, patience, datetime.now(UTC)
    )
    if not options.dry_run:
        producer = Producer({**reading.kafka.for_clients(), "acks": "all", "enable.idempotence": True})
        publish(producer, reading.topic, found.changes())
    return print_result(found.summary)


if __name__ == "__main__":
    run(main)
