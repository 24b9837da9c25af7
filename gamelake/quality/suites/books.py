"""What a lakehouse's own books say of its hops, as far as a suite asks for it."""

import sys
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """What manifests and logs say of a whole lakehouse; rows are those of the tables and those that erasures took out.

    Attributes:
        records: by the offsets that were taken, and in the files.
        settled: rows of silver, dead letters, duplicates, quarantined and dropped rows together.
        games_rows: of all games' silver tables.
        problems: what does not add up, each in a line.
    """

    records: int
    settled: int
    bronze_rows: int
    games_rows: int
    shared_rows: int
    problems: Sequence[str]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Coordinates that follow each other, both ends included."""

    partition: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Taken:
    """A batch: which coordinates it took, and how many of them may stand in bronze alone: duplicates, dropped rows."""

    stretches: tuple[Stretch, ...]
    in_bronze_alone: int


@dataclass(frozen=True, slots=True)
class Unexplained:
    """Records that nothing tells of: how many, and the coordinates that they are among, sorted."""

    count: int
    among: list[tuple[int, int]]


def unexplained_of(lost: Sequence[tuple[int, int]], batches: Sequence[Taken]) -> Unexplained:
    """Of coordinates that stand in bronze alone those of batches that told of fewer.

    Which of a batch's records were its duplicates nobody has noted: all of the batch are given. One of a batch that is
    not known any more is taken for explained.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    ordered = sorted(
        (part.partition, part.first, part.last, at) for at, of in enumerate(batches) for part in of.stretches
    )
    for partition, offset in sorted(lost):
        place = bisect_right(ordered, (partition, offset, sys.maxsize, 0)) - 1
        if place >= 0 and ordered[place][0] == partition and offset <= ordered[place][2]:
            found.setdefault(ordered[place][3], []).append((partition, offset))
    too_many = {at: len(records) - batches[at].in_bronze_alone for at, records in found.items()}
    among = sorted(record for at, records in found.items() if too_many[at] > 0 for record in records)
    return Unexplained(sum(count for count in too_many.values() if count > 0), among)
