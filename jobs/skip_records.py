"""Makes a stream write named records to the dead letters undecoded: a way past records that stop it.

The stream reads this when it starts, and after each failure of a batch. The records stay in bronze, and a replay of the
dead letters decodes them again. Prints one JSON document with the skipped records. Settings come from GAMELAKE_*
variables (docs/settings.md). No Spark, no Kafka.
"""

import argparse
from collections.abc import Iterator

import msgspec

from gamelake.command import add_confirmation, command_parser, is_confirmed, print_result, require_answer
from gamelake.delta.listing import stream_names
from gamelake.ledger.generations import Generation, Generations
from gamelake.ledger.skipped_records import SkippedRecords, SkippedRecordsOfStream
from gamelake.model.errors import SettingsError
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Store
from gamelake.program import FAILED, run
from gamelake.streaming.driver.stream import Stream


def main() -> int:
    """Record what to skip, or print the dry run."""
    parser = command_parser(__doc__)
    parser.add_argument("--topic", required=True, help="the Kafka topic of the records")
    parser.add_argument("--partition", required=True, type=int, help="their partition")
    parser.add_argument(
        "--offsets", required=True, type=_ranges, metavar="OFFSETS", help="such as 17 or 17-20 or 17,30-31"
    )
    add_confirmation(parser, "print what would be skipped, and change nothing")
    arguments = parser.parse_args()
    require_answer(parser, arguments)
    store = Store(LakehouseSettings.from_env().location)
    generations = [*_reading(store, arguments.topic)]
    if not generations:
        raise SettingsError(f"no stream of this lakehouse reads the topic '{arguments.topic}'")
    skipped = [
        (each, _skipped(store, each, arguments.partition, offsets))
        for each in generations
        for offsets in arguments.offsets
    ]
    planned = [{"stream": each.stream, **msgspec.to_builtins(what)} for each, what in skipped]
    if not (
        arguments.dry_run
        or arguments.yes
        or is_confirmed("Write these records to the dead letters undecoded?", planned)
    ):
        return FAILED
    if not arguments.dry_run:
        for each, what in skipped:
            SkippedRecordsOfStream(store, each.stream).add(what)
    return print_result(planned)


def _ranges(text: str) -> list[tuple[int, int]]:
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal() and int(first) <= int(last or first)):
            raise argparse.ArgumentTypeError(
                f"'{part}' is neither an offset nor a range of offsets, such as 17 or 17-20"
            )
        found.append((int(first), int(last or first)))
    return found


def _reading(store: Store, topic: str) -> Iterator[Generation]:
    """The present generations of the streams that read a topic."""
    for name in stream_names(store):
        newest = Generations(store, name).all()[-1:]
        yield from (each for each in newest if each.topic == topic)


def _skipped(store: Store, generation: Generation, partition: int, offsets: tuple[int, int]) -> SkippedRecords:
    first, last = offsets
    position = Stream(store, generation.stream, generation.topic).positions(generation).get(partition, 0)
    if first < position:
        raise SettingsError(
            f"'{generation.stream}' has processed partition {partition} up to offset {position - 1}; it can skip "
            "later records only"
        )
    problem = "skipped by an operator"
    return SkippedRecords(topic_id=generation.topic_id, partition=partition, first=first, last=last, problem=problem)


if __name__ == "__main__":
    run(main)
