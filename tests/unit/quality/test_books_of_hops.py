"""What stands in bronze alone is explained by what batches have told of, and else it is named."""

from gamelake.quality.suites.hops import BatchCoordinates, CoordinateRange, find_unexplained

TAKEN = [
    BatchCoordinates((CoordinateRange(0, 0, 99), CoordinateRange(1, 0, 49)), in_bronze_alone=1),
    BatchCoordinates((CoordinateRange(0, 100, 199),), in_bronze_alone=0),
]


def test_as_many_as_a_batch_has_told_of_are_explained() -> None:
    assert find_unexplained([(0, 7)], TAKEN).count == 0


def test_of_a_batch_that_has_told_of_fewer_all_are_named() -> None:
    found = find_unexplained([(1, 3), (0, 7)], TAKEN)

    assert found.count == 1
    assert found.among == [(0, 7), (1, 3)]


def test_one_that_a_batch_without_duplicates_lost_is_named_alone() -> None:
    found = find_unexplained([(0, 7), (0, 150)], TAKEN)

    assert (found.count, found.among) == (1, [(0, 150)])


def test_what_batches_took_that_are_not_known_any_more_is_taken_for_explained() -> None:
    assert find_unexplained([(0, 200), (2, 0)], TAKEN).count == 0
