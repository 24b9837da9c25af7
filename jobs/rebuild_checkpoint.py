"""Rebuilds a lost or damaged checkpoint of the ingest stream from its manifests; the next start continues from there.

Stop the ingest job first. Settings come from GAMELAKE_* variables (docs/settings.md), the same as for the job itself.
"""

from gamelake.command import command_parser
from gamelake.ledger.held_tables import stream_tables
from gamelake.objects.store import Store
from gamelake.program import OK, run
from gamelake.streaming.driver.runner import finish_last_batch
from gamelake.streaming.driver.settings import IngestSettings
from gamelake.streaming.driver.stream import Stream
from gamelake.streaming.kafka.source import SourceTopic


def main() -> int:
    """Finish the last batch, then start a new checkpoint generation where it ended."""
    parser = command_parser(__doc__)
    parser.add_argument(
        "--dry-run", action="store_true", help="print where the stream would continue, and change nothing"
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--new-topic", action="store_true", help="continue at the beginning of a topic that was created again"
    )
    choice.add_argument("--skip-lost", action="store_true", help="skip offsets that Kafka no longer holds")
    arguments = parser.parse_args()
    settings = IngestSettings.from_env()
    stream = Stream(Store(settings.lakehouse.location), settings.stream, settings.topic)
    topic = SourceTopic(settings.kafka, settings.topic)
    topic_id, earliest = topic.id(), topic.earliest_offsets()
    print(f"next offsets by partition: {stream.next_offsets(topic_id)}; Kafka holds them from: {earliest}")
    if arguments.dry_run:
        return OK
    with stream_tables(settings.lakehouse.location) as tables:
        last = stream.last_manifest()
        # Live operations, whose batches have a state, alone write their tables.
        finish_last_batch(stream, tables, has_concurrent_stream=last is None or last.state is None)
    if arguments.new_topic:
        generation = stream.restart_on_new_topic(topic_id, earliest)
    else:
        generation = stream.rebuild(topic_id, reason="requested", earliest=earliest if arguments.skip_lost else None)
    for lost in generation.lost:
        print(f"lost: offsets {lost.first} to {lost.last} of partition {lost.partition}")
    print(f"generation {generation.number} is ready; its first batch is {generation.first_batch}")
    return OK


if __name__ == "__main__":
    run(main)
