"""The rate of each key."""

from datetime import timedelta

import msgspec
import pytest

from services.gateway.authentication import GameKey
from services.gateway.errors import RateLimitedError
from services.gateway.limits.rates import RateLimits


def a_key(rate: int, game: str = "archery_duel") -> GameKey:
    return GameKey(id=f"{game}-{rate}", game=game, secrets=("0" * 32,), rate=rate)


def test_a_key_over_its_rate_learns_when_to_retry_and_does_not_affect_others() -> None:
    rates = RateLimits(timedelta(seconds=2))
    rates.take(a_key(100), 200, now=0.0)

    with pytest.raises(RateLimitedError) as refused:
        rates.take(a_key(100), 50, now=0.0)
    rates.take(a_key(100, "bingo_harbor"), 200, now=0.0)
    rates.take(a_key(100), 50, now=0.5)

    assert refused.value.retry_after == timedelta(seconds=0.5)


def test_a_game_that_sends_continuously_gets_its_rate() -> None:
    rates, accepted = RateLimits(timedelta(seconds=1)), 0
    for tick in range(10_000):
        try:
            rates.take(a_key(100), 7, now=tick / 100)
        except RateLimitedError:
            continue
        accepted += 7

    assert 100 * 100 <= accepted <= 100 * 100 + 100 + 7


@pytest.mark.parametrize("processes", [1, 4])
def test_a_batch_above_the_capacity_needs_a_full_bucket_and_leaves_a_negative_balance(processes: int) -> None:
    rates = RateLimits(timedelta(seconds=1), processes)
    rates.take(a_key(100 * processes), 500, now=0.0)

    with pytest.raises(RateLimitedError):
        rates.take(a_key(100 * processes), 1, now=3.9)
    rates.take(a_key(100 * processes), 1, now=4.1)


def test_a_game_with_two_keys_of_different_rates_gets_both_rates_and_no_more() -> None:
    rates, accepted = RateLimits(timedelta(seconds=1)), 0
    slow, fast = a_key(100), a_key(101)
    for tick in range(1_000):
        for key in (slow, fast):
            try:
                rates.take(key, 10, now=tick / 1_000)
            except RateLimitedError:
                continue
            accepted += 10

    assert accepted <= 2 * (100 + 101) + 20


def test_a_changed_rate_holds_at_once_and_gives_no_second_burst() -> None:
    rates = RateLimits(timedelta(seconds=1))
    rates.take(a_key(100), 100, now=0.0)

    with pytest.raises(RateLimitedError):
        rates.take(msgspec.structs.replace(a_key(100), rate=1_000), 100, now=0.0)
    rates.take(msgspec.structs.replace(a_key(100), rate=1_000), 100, now=0.1)
