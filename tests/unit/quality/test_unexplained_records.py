"""Records only in bronze are explained by the counts of their batches, or named."""

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest

from gamelake.ledger.coordinates import CoordinateRange
from gamelake.quality.suites.lost_records import (
    BatchCoordinates,
    CountByBatch,
    RecordsOfBatch,
    UnexplainedRecords,
    find_unexplained,
)

TOPIC = "events"
TAKEN = [
    BatchCoordinates((CoordinateRange(TOPIC, 0, 0, 99), CoordinateRange(TOPIC, 1, 0, 49)), in_bronze_alone=1),
    BatchCoordinates((CoordinateRange(TOPIC, 0, 100, 199),), in_bronze_alone=0),
]


def unexplained(
    lost: Sequence[tuple[int, int]], batches: list[BatchCoordinates], topic: str = TOPIC, at_once: int = 100
) -> UnexplainedRecords:
    """Count as the tasks and the grouping of their rows do."""
    parts = [
        pa.RecordBatch.from_pylist(
            [{"topic": topic, "partition": each[0], "offset": each[1]} for each in lost[first : first + at_once]]
        )
        for first in range(0, len(lost), at_once)
    ]
    found: dict[int, RecordsOfBatch] = {}
    for counted in CountByBatch.of(batches)(iter(parts)):
        for row in counted.to_pylist():
            example, former = (row["partition"], row["offset"]), found.get(row["batch"])
            count = row["records"] + (former.count if former else 0)
            found[row["batch"]] = RecordsOfBatch(count, min(example, former.example) if former else example)
    return find_unexplained(found, batches)


def test_as_many_records_as_a_batch_reported_are_explained() -> None:
    assert unexplained([(0, 7)], TAKEN).count == 0


def test_a_batch_that_reported_fewer_is_named_by_one_of_its_records() -> None:
    assert unexplained([(1, 3), (0, 7)], TAKEN) == UnexplainedRecords(1, ((0, 7),))


def test_a_record_lost_by_a_batch_without_duplicates_is_named_alone() -> None:
    assert unexplained([(0, 7), (0, 150)], TAKEN) == UnexplainedRecords(1, ((0, 150),))


@pytest.mark.parametrize(("topic", "place"), [(TOPIC, (0, 200)), (TOPIC, (2, 0)), ("former", (0, 150))])
def test_records_of_batches_without_a_manifest_count_as_explained(topic: str, place: tuple[int, int]) -> None:
    assert unexplained([place], TAKEN, topic).count == 0


def test_lost_records_are_counted_among_any_number_of_explained_ones() -> None:
    draw, batches, lost = random.Random(1), [], []
    for first in range(0, 200_000, 1_000):
        batches.append(BatchCoordinates((CoordinateRange(TOPIC, 0, first, first + 999),), in_bronze_alone=800))
        lost += [(0, first + offset) for offset in draw.sample(range(1_000), 830)]
    draw.shuffle(lost)

    assert unexplained(lost, batches, at_once=10_000).count == 200 * 30
