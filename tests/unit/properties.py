"""The Hypothesis settings of all property tests; tests/embedded has its own too (tests/embedded/effort.py)."""

import os

from hypothesis import HealthCheck, settings

_SLOW_TO_DRAW = (HealthCheck.too_slow, HealthCheck.data_too_large)


def examples(count: int, variable: str = "PROPERTY_FACTOR") -> settings:
    """Settings for at most `count` examples without a deadline, the same ones at every run in CI.

    With the environment variable set to <n> it is n times as many, and others at each run.
    """
    factor = os.environ.get(variable)
    return settings(
        max_examples=count * int(factor or 1),
        deadline=None,
        derandomize=factor is None and os.environ.get("CI") == "true",
        suppress_health_check=_SLOW_TO_DRAW,
    )
