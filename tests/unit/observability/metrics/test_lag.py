"""The lag: committed offsets compared with Kafka's, at times that the test chooses."""

import math

import pytest

from gamelake.observability.metrics.lag import Lag, LagReading, OffsetSpan, Oldest

NOON = 1_800_000_000.0


def polled(lag: Lag, at: float, ends: dict[int, int], oldest: dict[int, Oldest] | None = None) -> None:
    lag.update(LagReading(at, {partition: OffsetSpan(0, end) for partition, end in ends.items()}, oldest or {}))


def test_nothing_is_known_before_kafka_has_said_anything() -> None:
    lag = Lag({0: 10}, trigger_seconds=0)

    assert lag.behind() == {}
    assert math.isnan(lag.seconds_behind(NOON))
    assert math.isnan(lag.catch_up_seconds(NOON))
    assert math.isnan(lag.retention_used())


def test_what_is_committed_is_not_behind() -> None:
    lag = Lag({0: 10, 1: 0}, trigger_seconds=0)
    polled(lag, NOON, {0: 15, 1: 7})
    assert lag.behind() == {0: 5, 1: 7}

    lag.committed({0: 15, 1: 4}, batch_seconds=1)

    assert lag.behind() == {0: 0, 1: 3}


def test_a_partition_that_was_never_read_is_behind_from_its_first_offset_on() -> None:
    lag = Lag({}, trigger_seconds=0)

    lag.update(LagReading(NOON, {0: OffsetSpan(100, 130)}))

    assert lag.behind() == {0: 30}


def test_seconds_behind_are_the_age_of_the_oldest_record_that_waits_and_grow_by_themselves() -> None:
    lag = Lag({0: 10, 1: 10}, trigger_seconds=0)
    assert lag.unread({0: OffsetSpan(0, 20), 1: OffsetSpan(0, 10)}) == {0: 10}
    polled(lag, NOON, {0: 20, 1: 10}, {0: Oldest(10, NOON - 3)})

    assert lag.seconds_behind(NOON) == 3
    assert lag.seconds_behind(NOON + 60) == 63


def test_a_record_that_is_known_is_not_asked_for_again() -> None:
    lag = Lag({0: 10}, trigger_seconds=0)
    polled(lag, NOON, {0: 20}, {0: Oldest(10, NOON - 3)})

    assert lag.unread({0: OffsetSpan(0, 25)}) == {}
    lag.committed({0: 12}, batch_seconds=1)
    assert lag.unread({0: OffsetSpan(0, 25)}) == {0: 12}


def test_a_query_that_has_read_all_is_not_behind_however_old_the_records_are() -> None:
    lag = Lag({0: 10}, trigger_seconds=0)
    polled(lag, NOON, {0: 20}, {0: Oldest(10, NOON - 3)})

    lag.committed({0: 20}, batch_seconds=1)

    assert lag.seconds_behind(NOON + 60) == 0


def test_a_record_that_kafka_did_not_show_waits_since_it_was_not_there_yet() -> None:
    lag = Lag({0: 10}, trigger_seconds=0)
    polled(lag, NOON, {0: 10})
    polled(lag, NOON + 5, {0: 11})

    assert lag.seconds_behind(NOON + 6) == 6
    assert lag.unread({0: OffsetSpan(0, 11)}) == {0: 10}


def test_an_answer_about_a_record_that_is_committed_meanwhile_is_not_taken_for_the_next_one() -> None:
    lag = Lag({0: 10}, trigger_seconds=0)
    lag.committed({0: 15}, batch_seconds=1)
    polled(lag, NOON, {0: 20}, {0: Oldest(10, NOON - 100)})

    assert lag.seconds_behind(NOON + 1) == 1


def test_between_a_commit_and_the_next_poll_it_is_never_understated() -> None:
    lag = Lag({0: 10}, trigger_seconds=0)
    polled(lag, NOON, {0: 20}, {0: Oldest(10, NOON - 3)})

    lag.committed({0: 15}, batch_seconds=1)

    assert lag.seconds_behind(NOON) == 3


def test_a_producer_whose_clock_is_ahead_makes_no_negative_lag() -> None:
    lag = Lag({0: 10}, trigger_seconds=0)
    polled(lag, NOON, {0: 20}, {0: Oldest(10, NOON + 30)})

    assert lag.seconds_behind(NOON) == 0


def test_a_query_catches_up_at_the_pace_since_the_clock_went_back() -> None:
    lag = Lag({0: 0}, trigger_seconds=0)
    lag.planned(left=1)
    for at, position in ((NOON, 0), (NOON - 600, 10), (NOON - 590, 30)):
        lag.committed({0: position}, batch_seconds=1)
        polled(lag, at, {0: 100}, {0: Oldest(position, NOON - 700)})

    assert lag.catch_up_seconds(NOON - 590) == 70 / 2


def test_retention_is_used_as_far_as_in_the_worst_partition() -> None:
    lag = Lag({0: 90, 1: 100}, trigger_seconds=0)

    lag.update(LagReading(NOON, {0: OffsetSpan(0, 100), 1: OffsetSpan(50, 200), 2: OffsetSpan(7, 7)}))

    assert lag.retention_used() == pytest.approx(100 / 150)


def test_retention_is_used_up_when_kafka_deletes_what_was_not_read() -> None:
    lag = Lag({0: 10}, trigger_seconds=0)

    lag.update(LagReading(NOON, {0: OffsetSpan(20, 100)}))

    assert lag.retention_used() == 1


def test_an_empty_topic_uses_no_retention() -> None:
    lag = Lag({}, trigger_seconds=0)

    polled(lag, NOON, {0: 0})

    assert lag.retention_used() == 0


class Catching:
    """A query that left records behind, polled every 10 seconds."""

    def __init__(self, trigger_seconds: float = 0) -> None:
        self.lag = Lag({0: 0}, trigger_seconds)
        self.now = NOON
        self.end = 0
        self.position = 0

    def pass_time(self, arrived: int, committed: int, left: int) -> None:
        """Let records arrive and batches be committed, and poll."""
        self.now += 10
        self.end += arrived
        self.position += committed
        if committed:
            self.lag.committed({0: self.position}, batch_seconds=10)
            self.lag.planned(left)
        waiting = {0: Oldest(self.position, self.now - 500)} if left else {0: Oldest(self.position, self.now - 10)}
        polled(self.lag, self.now, {0: self.end}, waiting)

    @property
    def catch_up(self) -> float:
        """The estimate, now."""
        return self.lag.catch_up_seconds(self.now)


def test_the_time_to_catch_up_is_what_is_left_by_how_fast_it_shrinks() -> None:
    query = Catching()
    query.pass_time(10_000, 1, left=9_999)
    for _ in range(5):
        query.pass_time(arrived=100, committed=600, left=7_000)

    assert query.catch_up == pytest.approx((9_999 - 5 * 500) / 50)


def test_a_query_that_falls_back_never_catches_up() -> None:
    query = Catching()
    for _ in range(5):
        query.pass_time(arrived=1_000, committed=900, left=100)

    assert query.catch_up == math.inf


def test_a_query_that_takes_all_there_is_not_behind_though_a_batch_is_always_in_progress() -> None:
    query = Catching()
    query.pass_time(1_000, 0, left=0)
    for _ in range(5):
        query.pass_time(arrived=1_000, committed=1_000, left=0)

    assert sum(query.lag.behind().values()) == 1_000
    assert query.catch_up == 0


@pytest.mark.parametrize("trigger_seconds", [0, 600])
def test_a_query_that_took_all_and_then_hangs_is_overdue_after_its_trigger_and_a_minute(trigger_seconds: float) -> None:
    query = Catching(trigger_seconds)
    query.pass_time(1_000, 1_000, left=0)
    query.pass_time(10, 0, left=0)

    assert query.lag.catch_up_seconds(query.now + trigger_seconds + 49) == 0
    assert query.lag.catch_up_seconds(query.now + trigger_seconds + 51) == math.inf
