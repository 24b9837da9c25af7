"""A wait checks often what is cheap to check, and seldom what is not."""

import pytest

from tests.support.eventually import eventually, pause_after


@pytest.mark.parametrize(("check_seconds", "pause_seconds"), [(0.0, 0.05), (0.5, 1.0), (30.0, 2.0)])
def test_the_pause_grows_with_the_cost_of_the_check(check_seconds: float, pause_seconds: float) -> None:
    assert pause_after(check_seconds) == pause_seconds


def test_a_wait_ends_with_its_condition_and_fails_at_its_deadline() -> None:
    checks = iter([False, False, True])
    eventually(lambda: next(checks))

    with pytest.raises(AssertionError, match="did not come true within 0 s"):
        eventually(lambda: False, timeout=0.1)
