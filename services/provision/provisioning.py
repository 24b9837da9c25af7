"""What keeps a service from being made ready, grouped by what must happen next."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from gamelake.model.errors import StartupError, TransientError


class ServiceSilentError(TransientError):
    """A service gave no usable answer while the patience lasted."""


class ServiceRefusedError(StartupError):
    """A service answered that it won't: the credentials or the declaration are wrong."""


SECONDS_BETWEEN_LOOKS = 0.5
T = TypeVar("T")


def wait_for(service: str, answer: Callable[[], T], patience: timedelta) -> T:
    """Ask a service, by its name in the stack, until it answers; `answer` raises ServiceSilentError while it does not.

    Raises:
        ServiceSilentError: the patience is over; names the service and what was wrong the last time.
    """
    latest = time.monotonic() + patience.total_seconds()
    while True:
        try:
            return answer()
        except ServiceSilentError as error:
            if time.monotonic() >= latest:
                raise ServiceSilentError(
                    f"{service} was not ready within {patience.total_seconds():g} s: {error}; "
                    f"'make logs S={service}' may say why, then run this again"
                ) from error
        time.sleep(SECONDS_BETWEEN_LOOKS)


NOTHING = "nothing to change"


class Changes:
    """Prints a line for each change and each thing that was left alone on purpose."""

    def __init__(self, subject: str, say: Callable[[str], None] = print) -> None:
        self._subject = subject
        self._say = say
        self._made = 0

    def note(self, change: str) -> None:
        """Something is different now."""
        self._made += 1
        self._say(f"{self._subject}: {change}")

    def left_alone(self, what: str) -> None:
        """Something differs from the declaration and stays so, because putting it right could destroy something."""
        self._say(f"{self._subject}: left alone: {what}")

    def close(self) -> None:
        """Say so when there was nothing to do."""
        if not self._made:
            self._say(f"{self._subject}: {NOTHING}")
