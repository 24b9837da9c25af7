"""The coordinates of a batch's records in the tables: topic, partition and offset, computed from its manifest.

Events of files have partitions and offsets that no Kafka record has (`gamelake.streaming.files.coordinates`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gamelake.ledger.manifests import BatchManifest, OffsetRange

MOST_OBJECTS, MOST_EVENTS = 2**4, 2**24
_EVENTS_OF_A_NOTIFICATION = MOST_OBJECTS * MOST_EVENTS


@dataclass(frozen=True, slots=True, order=True)
class CoordinateRange:
    """A range of offsets in a partition of a topic.

    Attributes:
        topic: the Kafka topic.
        partition: negative for events of files.
        first: the first offset.
        last: the last offset; it is in the range.
    """

    topic: str
    partition: int
    first: int
    last: int


def coordinates_of(manifest: BatchManifest) -> tuple[CoordinateRange, ...]:
    """Return the coordinates of the records that a batch read, from Kafka or from files that notifications named."""
    of_range = _of_notifications if manifest.files else _of_records
    return tuple(of_range(manifest.topic, taken) for taken in manifest.offsets)


def joined(ranges: Iterable[CoordinateRange]) -> tuple[CoordinateRange, ...]:
    """Merge overlapping and adjacent ranges; return them sorted."""
    result: list[CoordinateRange] = []
    for each in sorted(ranges):
        last = result[-1] if result else None
        if last and (last.topic, last.partition) == (each.topic, each.partition) and each.first <= last.last + 1:
            result[-1] = replace(last, last=max(last.last, each.last))
        else:
            result.append(each)
    return tuple(result)


def _of_records(topic: str, taken: OffsetRange) -> CoordinateRange:
    return CoordinateRange(topic, taken.partition, taken.first, taken.last)


def _of_notifications(topic: str, taken: OffsetRange) -> CoordinateRange:
    first, beyond = taken.first * _EVENTS_OF_A_NOTIFICATION, (taken.last + 1) * _EVENTS_OF_A_NOTIFICATION
    return CoordinateRange(topic, -1 - taken.partition, first, beyond - 1)
