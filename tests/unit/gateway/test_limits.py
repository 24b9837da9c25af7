"""The rate of each game, and the capacity of one process."""

from datetime import timedelta

import pytest

from services.gateway.errors import RateLimitedError, UnavailableError
from services.gateway.limits import EventCapacity, RateLimits


def test_a_game_over_its_rate_learns_when_to_retry_and_does_not_affect_others() -> None:
    rates = RateLimits(timedelta(seconds=2))
    rates.take("archery_duel", 100, 200, now=0.0)

    with pytest.raises(RateLimitedError) as refused:
        rates.take("archery_duel", 100, 50, now=0.0)
    rates.take("bingo_harbor", 100, 200, now=0.0)
    rates.take("archery_duel", 100, 50, now=0.5)

    assert refused.value.retry_after == timedelta(seconds=0.5)


def test_a_game_that_sends_continuously_gets_its_rate() -> None:
    rates, accepted = RateLimits(timedelta(seconds=1)), 0
    for tick in range(10_000):
        try:
            rates.take("archery_duel", 100, 7, now=tick / 100)
        except RateLimitedError:
            continue
        accepted += 7

    assert 100 * 100 <= accepted <= 100 * 100 + 100 + 7


@pytest.mark.parametrize("processes", [1, 4])
def test_a_batch_above_the_capacity_needs_a_full_bucket_and_leaves_a_negative_balance(
    processes: int,
) -> None:
    rates = RateLimits(timedelta(seconds=1), processes)
    rates.take("archery_duel", 100 * processes, 500, now=0.0)

    with pytest.raises(RateLimitedError):
        rates.take("archery_duel", 100 * processes, 1, now=3.9)
    rates.take("archery_duel", 100 * processes, 1, now=4.1)


def test_a_request_beyond_the_capacity_is_refused_until_there_is_capacity_again() -> None:
    capacity = EventCapacity(10)

    with capacity.reserved(6), pytest.raises(UnavailableError), capacity.reserved(5):
        pass

    with capacity.reserved(5), capacity.reserved(5):
        pass


def test_a_request_above_the_capacity_is_admitted_alone() -> None:
    with EventCapacity(10).reserved(20):
        pass


def test_a_failed_request_releases_its_capacity() -> None:
    capacity = EventCapacity(10)

    with pytest.raises(ZeroDivisionError), capacity.reserved(10):
        raise ZeroDivisionError

    with capacity.reserved(10):
        pass
