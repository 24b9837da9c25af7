"""Repeats a call of the telemetry in a thread: its failures stop nothing."""

from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from types import TracebackType
from typing import Self

from gamelake.model.logs import event_logger

log = event_logger(__name__)

_LAST_SECONDS = 5.0


class Repeating:
    """Calls a function at an interval until the end of the block; a failure is logged once, until a call succeeds."""

    def __init__(self, name: str, call: Callable[[], None], interval: timedelta) -> None:
        self._name = name
        self._call = call
        self._interval = interval
        self._ended = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; does not wait for a call that hangs, since the thread is a daemon."""
        self._ended.set()
        self._thread.join(_LAST_SECONDS)

    def _run(self) -> None:
        is_logged = False
        while not self._ended.is_set():
            try:
                self._call()
                is_logged = False
            except Exception as error:
                if not is_logged:
                    log.warning("poll_failed", poll=self._name, error=error, action="tries again", exc_info=True)
                is_logged = True
            self._ended.wait(self._interval.total_seconds())
