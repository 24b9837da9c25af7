"""Hypothesis as these tests use it: a modest number of examples, the same ones in CI every time."""

import os

from hypothesis import HealthCheck, settings

_SLOW_TO_DRAW = (HealthCheck.too_slow, HealthCheck.data_too_large)


def examples(count: int) -> settings:
    """At most so many examples, however long each one takes."""
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=os.environ.get("CI") == "true",
        suppress_health_check=_SLOW_TO_DRAW,
    )
