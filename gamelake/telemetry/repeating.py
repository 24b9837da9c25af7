"""Does something again and again in a thread of its own, whatever goes on meanwhile."""

import logging
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from types import TracebackType
from typing import Self

log = logging.getLogger(__name__)

_LAST_SECONDS = 5.0


class Repeating:
    """Looks, waits, and looks again until the end of the block; a look that fails is told once, until one goes well."""

    def __init__(self, name: str, look: Callable[[], None], interval: timedelta) -> None:
        self._name = name
        self._look = look
        self._interval = interval
        self._ended = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        """Begin to look."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Look no more; does not wait for a look that hangs, since the thread is a daemon."""
        self._ended.set()
        self._thread.join(_LAST_SECONDS)

    def _run(self) -> None:
        is_told = False
        while not self._ended.is_set():
            try:
                self._look()
                is_told = False
            except Exception as error:
                if not is_told:
                    log.warning("%s failed: %s; it is tried again", self._name, error, exc_info=True)
                is_told = True
            self._ended.wait(self._interval.total_seconds())
