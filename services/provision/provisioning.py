"""The shared parts of the provisioning programs: errors, waiting for a service, and the log of changes."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from gamelake.model.errors import StartupError, TransientError

POLL_SECONDS = 0.5
T = TypeVar("T")
NOTHING = "nothing to change"


class ServiceUnavailableError(TransientError):
    """A service is not available, or not ready yet."""


class ServiceRefusedError(StartupError):
    """A service refused a request: the credentials or the declaration are wrong."""


def wait_for(service: str, answer: Callable[[], T], patience: timedelta) -> T:
    """Call `answer` until it returns; it raises ServiceUnavailableError while the service is not ready.

    Raises:
        ServiceUnavailableError: the time limit `patience` is over; the message has the service and its last error.
    """
    latest = time.monotonic() + patience.total_seconds()
    while True:
        try:
            return answer()
        except ServiceUnavailableError as error:
            if time.monotonic() >= latest:
                raise ServiceUnavailableError(
                    f"{service} was not ready within {patience.total_seconds():g} s: {error}; "
                    f"'make logs S={service}' may say why, then run this again"
                ) from error
        time.sleep(POLL_SECONDS)


class ChangeLog:
    """Prints a line for each change, and for each difference that is left on purpose."""

    def __init__(self, subject: str, say: Callable[[str], None] = print) -> None:
        self._subject = subject
        self._say = say
        self._made = 0

    def note(self, change: str) -> None:
        """Print a change."""
        self._made += 1
        self._say(f"{self._subject}: {change}")

    def skipped(self, what: str) -> None:
        """Print a difference that is not corrected, because the correction could destroy something."""
        self._say(f"{self._subject}: left alone: {what}")

    def close(self) -> None:
        """Print a line if there were no changes."""
        if not self._made:
            self._say(f"{self._subject}: {NOTHING}")
