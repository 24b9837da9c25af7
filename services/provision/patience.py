"""Waits for a service that may still be starting, but not for ever."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from services.provision.errors import ServiceSilentError

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
