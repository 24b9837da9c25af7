"""A clock that advances by the time that passes, whatever becomes of the machine's time of day."""

import time

from gamelake.model.clocks import SteadyClock

SECOND = 1_000_000_000


def test_a_steady_clock_starts_with_the_time_of_day_and_does_not_jump_with_it() -> None:
    day, passed = 1_800_000_000 * SECOND, 5 * SECOND
    clock = SteadyClock(lambda: day, lambda: passed)

    assert clock() == 1_800_000_000_000_000
    day += 600 * SECOND
    assert clock() == 1_800_000_000_000_000
    passed += 3 * SECOND
    assert clock() == 1_800_000_003_000_000


def test_a_steady_clock_is_the_time_of_day_where_nothing_jumps() -> None:
    clock = SteadyClock()

    assert abs(clock() - time.time_ns() // 1000) < 1_000_000
