"""Waits for a condition, never for a time."""

import time
from collections.abc import Callable

DEADLINE_SECONDS = 30.0
SECONDS_BETWEEN_LOOKS = 0.05


def eventually(condition: Callable[[], bool], timeout: float = DEADLINE_SECONDS) -> None:
    """Return as soon as the condition holds; fail when it has not within `timeout` seconds."""
    latest = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < latest, f"did not come true within {timeout:.0f} s"
        time.sleep(SECONDS_BETWEEN_LOOKS)
