"""Waits for a condition, never for a time."""

import time
from collections.abc import Callable

DEADLINE_SECONDS = 30.0
SECONDS_BETWEEN_LOOKS = 0.05


def eventually(condition: Callable[[], bool]) -> None:
    """Return as soon as the condition holds; fail when it has not within the deadline."""
    latest = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < latest, f"did not come true within {DEADLINE_SECONDS:.0f} s"
        time.sleep(SECONDS_BETWEEN_LOOKS)
