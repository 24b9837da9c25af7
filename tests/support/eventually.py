"""Waits for a condition, never for a time."""

import time
from collections.abc import Callable

DEADLINE_SECONDS = 30.0
SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 2.0
# A condition may be a command in a container: checked without a rest, it takes the cores from the thing that it waits
# for.
PAUSE_PER_CHECK = 2.0


def eventually(condition: Callable[[], bool], timeout: float = DEADLINE_SECONDS) -> None:
    """Return as soon as the condition holds; fail when it has not within `timeout` seconds."""
    started = time.monotonic()
    while True:
        since = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        assert now < started + timeout, f"did not come true within {timeout:.0f} s"
        time.sleep(pause_after(now - since))


def pause_after(check_seconds: float) -> float:
    """Return how many seconds to wait after a check that took `check_seconds`."""
    return min(max(PAUSE_PER_CHECK * check_seconds, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
