"""Keeps observers from the process that they observe: an error of one stops neither the process nor other observers."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from gamelake.model.logs import event_logger

log = event_logger(__name__)

P = ParamSpec("P")
Observer = TypeVar("Observer")


def harmless(function: Callable[P, None]) -> Callable[P, None]:
    """Log what the function raises, the first time, and continue: a metric is worth less than the stream."""
    is_logged = False

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        nonlocal is_logged
        try:
            function(*args, **kwargs)
        except Exception:
            if not is_logged:
                is_logged = True
                log.exception(
                    "telemetry_failed",
                    function=function.__name__,
                    action="the stream continues; further failures are not logged",
                )

    return guarded


def all_of(observers: Sequence[Observer]) -> Observer:
    """Return an observer that passes each call on to all observers, in their order.

    An error of one observer is logged the first time, and stops neither the others nor the caller.

    Args:
        observers: of one kind, whose methods return nothing; may be empty.

    Example:
        >>> class Prints:
        ...     def committed(self, table):
        ...         print(table)
        >>> all_of([Prints(), Prints()]).committed("silver/events")
        silver/events
        silver/events
    """
    return cast("Observer", _AllObservers(observers))


class _AllObservers:
    def __init__(self, observers: Sequence[object]) -> None:
        self._observers = observers

    def __getattr__(self, method: str) -> Callable[..., None]:
        calls = [harmless(getattr(each, method)) for each in self._observers]

        def call_all(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 # those of any method
            for call in calls:
                call(*args, **kwargs)

        # Later calls find it without this method.
        setattr(self, method, call_all)
        return call_all
