"""The planned and the read offsets of a batch, and the breaker that stops a flood of bad records."""

import pytest

from gamelake.ledger.manifests import BatchManifest, OffsetRange
from gamelake.model.errors import CheckpointError, DeadLetterFloodError, OffsetGapError
from gamelake.streaming.driver.flood import FloodBreaker, FloodLimit
from gamelake.streaming.kafka.batch_records import shared_out
from gamelake.streaming.kafka.consumers import PartitionRange
from gamelake.streaming.kafka.source import PlannedOffsets, check_same_offsets, taken_offsets
from gamelake.streaming.plan import merge_offsets
from tests.support.manifests import a_manifest


def _taken(partition: int, first: int, last: int, records: int | None = None) -> OffsetRange:
    return OffsetRange(
        partition=partition, first=first, last=last, records=last - first + 1 if records is None else records
    )


def test_ranges_come_from_the_plan_and_counts_from_the_records() -> None:
    planned = PlannedOffsets({0: 10, 1: 5}, {0: 20, 1: 5, 2: 8})

    ranges = taken_offsets(planned, [_taken(0, 12, 18, records=4), _taken(2, 3, 7)])

    # Compaction and transactions leave holes; a new partition begins where its first record stands.
    assert ranges == (_taken(0, 10, 19, records=4), _taken(2, 3, 7))


def test_a_batch_reads_from_the_planned_offsets_and_new_partitions_from_their_beginning() -> None:
    planned = PlannedOffsets({0: 10, 1: 5}, {2: 8, 1: 5, 0: 20})

    assert planned.ranges == [PartitionRange(0, 10, 20), PartitionRange(2, 0, 8)]
    assert planned.records == 18


def test_ranges_are_shared_out_so_that_no_task_has_much_more_than_others() -> None:
    ranges = [PartitionRange(partition, 0, offsets) for partition, offsets in enumerate((10, 90, 30, 40, 20))]

    shares = shared_out(ranges, 2)

    assert sorted(sum(each.offsets for each in share) for share in shares) == [90, 100]
    assert sorted(each.partition for share in shares for each in share) == [0, 1, 2, 3, 4]
    assert shared_out(ranges[:1], 4) == [ranges[:1]]
    assert shared_out([], 4) == []


def test_a_range_without_records_counts_none() -> None:
    assert taken_offsets(PlannedOffsets({0: 10}, {0: 20}), []) == (_taken(0, 10, 19, records=0),)


@pytest.mark.parametrize(
    "read",
    [_taken(0, 9, 15), _taken(0, 10, 20), _taken(0, 25, 30), _taken(7, 0, 1)],
    ids=["early", "late", "far", "alien"],
)
def test_records_that_were_not_planned_stop_the_query(read: OffsetRange) -> None:
    with pytest.raises(OffsetGapError, match=rf"partitions? \[?{read.partition}"):
        taken_offsets(PlannedOffsets({0: 10}, {0: 20}), [read])


def test_the_ranges_of_several_tasks_make_one_for_each_partition() -> None:
    ranges = [_taken(1, 5, 9), _taken(0, 3, 4), _taken(1, 0, 4), _taken(1, 20, 20)]

    assert merge_offsets(ranges) == (_taken(0, 3, 4), _taken(1, 0, 20, records=11))
    assert merge_offsets([_taken(0, 3, 4), _taken(0, 3, 4)]) == (_taken(0, 3, 4, records=4),)


def _manifest(*offsets: OffsetRange) -> BatchManifest:
    return a_manifest(stream="ingest", batch_id=3, offsets=offsets)


def test_a_decided_batch_must_end_where_the_checkpoint_says() -> None:
    manifest = _manifest(_taken(0, 0, 9), _taken(1, 5, 6))

    check_same_offsets(manifest, {0: 10, 1: 7, 2: 99})

    for old_copy in ({0: 10, 1: 6}, {0: 10}, {}):
        with pytest.raises(CheckpointError, match="batch 3 took partition"):
            check_same_offsets(manifest, old_copy)


def test_more_bad_records_than_the_share_stop_the_query() -> None:
    breaker = FloodBreaker(FloodLimit(share=0.5, records=100))

    breaker.check(100, {"unknown_schema": 50})
    with pytest.raises(DeadLetterFloodError, match="51 of the last 100 records are bad"):
        breaker.check(100, {"unknown_schema": 51})


def test_a_flood_is_reported_with_its_reasons_the_most_frequent_first() -> None:
    breaker = FloodBreaker(FloodLimit(share=0.5, records=100))

    with pytest.raises(DeadLetterFloodError, match="Its reasons: unroutable 60, unknown_schema 30"):
        breaker.check(100, {"unknown_schema": 30, "unroutable": 60})


def test_a_few_bad_records_at_the_start_are_no_flood() -> None:
    FloodBreaker(FloodLimit(share=0.5, records=100)).check(99, {"unroutable": 99})


def test_small_batches_are_counted_together() -> None:
    breaker = FloodBreaker(FloodLimit(share=0.5, records=100))
    for _ in range(9):
        breaker.check(10, {"unroutable": 9})
        breaker.count(10, 9)

    with pytest.raises(DeadLetterFloodError):
        breaker.check(10, {"unroutable": 9})


def test_old_batches_are_not_counted() -> None:
    breaker = FloodBreaker(FloodLimit(share=0.5, records=100))
    breaker.count(90, 90)
    for _ in range(10):
        breaker.count(20, 0)

    breaker.check(10, {"unroutable": 10})


def test_a_good_batch_is_never_rejected_because_of_earlier_bad_ones() -> None:
    breaker = FloodBreaker(FloodLimit(share=0.5, records=100))
    breaker.count(1_000, 1_000)

    breaker.check(10, {})


def test_a_share_of_one_accepts_any_number_of_dead_letters() -> None:
    FloodBreaker(FloodLimit(share=1, records=1)).check(1_000, {"unroutable": 1_000})


def test_a_batch_without_records_is_no_flood() -> None:
    FloodBreaker(FloodLimit(share=0, records=1)).check(0, {})
