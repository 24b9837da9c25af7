"""Records only in bronze are explained by the counts of their batches, or named."""

from gamelake.quality.suites.hops import BatchCoordinates, CoordinateRange, find_unexplained

TAKEN = [
    BatchCoordinates((CoordinateRange(0, 0, 99), CoordinateRange(1, 0, 49)), in_bronze_alone=1),
    BatchCoordinates((CoordinateRange(0, 100, 199),), in_bronze_alone=0),
]


def test_as_many_records_as_a_batch_reported_are_explained() -> None:
    assert find_unexplained([(0, 7)], TAKEN).count == 0


def test_all_records_of_a_batch_that_reported_fewer_are_named() -> None:
    found = find_unexplained([(1, 3), (0, 7)], TAKEN)

    assert found.count == 1
    assert found.among == [(0, 7), (1, 3)]


def test_a_record_lost_by_a_batch_without_duplicates_is_named_alone() -> None:
    found = find_unexplained([(0, 7), (0, 150)], TAKEN)

    assert (found.count, found.among) == (1, [(0, 150)])


def test_records_of_batches_without_a_manifest_count_as_explained() -> None:
    assert find_unexplained([(0, 200), (2, 0)], TAKEN).count == 0
