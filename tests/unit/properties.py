"""The Hypothesis settings of all property tests; tests/embedded has its own too (tests/embedded/effort.py)."""

import os

from hypothesis import HealthCheck, settings

_SLOW_TO_DRAW = (HealthCheck.too_slow, HealthCheck.data_too_large)


def examples(count: int, variable: str = "PROPERTY_FACTOR") -> settings:
    """Settings for at most `count` examples without a deadline, the same ones at every run in CI.

    With the environment variable set to <n> it is n times as many; if that is more, they are others at each run.
    """
    factor = float(os.environ.get(variable) or 1)
    return settings(
        max_examples=max(1, round(count * factor)),
        deadline=None,
        derandomize=factor <= 1 and os.environ.get("CI") == "true",
        suppress_health_check=_SLOW_TO_DRAW,
    )
