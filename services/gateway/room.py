"""How many events one process may hold at a time, from when they are read until Kafka has them."""

from collections.abc import Iterator
from contextlib import contextmanager

from services.gateway.errors import NotTakenError


class Room:
    """Counts the events that are in the process, on one event loop."""

    def __init__(self, events: int) -> None:
        self._most = events
        self._events = 0

    @contextmanager
    def taken(self, events: int) -> Iterator[None]:
        """Hold the events of one request for as long as the block lasts; one request always may.

        Raises:
            NotTakenError: there is no room for them now, since the vault or Kafka is slow.
        """
        if self._events and self._events + events > self._most:
            raise NotTakenError("too many events wait for the vault and Kafka")
        self._events += events
        try:
            yield
        finally:
            self._events -= events
