"""Keeps the telemetry's own failures from whoever it observes."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

log = logging.getLogger(__name__)

P = ParamSpec("P")
_failed: set[str] = set()


def harmless(function: Callable[P, None]) -> Callable[P, None]:
    """Log what the function raises, the first time, and go on: a metric is worth less than the stream."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except Exception:
            if function.__qualname__ not in _failed:
                _failed.add(function.__qualname__)
                log.exception(
                    "telemetry failed in %s; the stream goes on, further failures are silent", function.__name__
                )

    return guarded
