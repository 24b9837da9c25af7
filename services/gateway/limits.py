"""Limits on events: a rate for each game (token bucket), and the number of events that one process may hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from services.gateway.errors import NotTakenError, TooManyEventsError


@dataclass(slots=True)
class Bucket:
    """Holds at most `capacity` tokens and gets `rate` a second; times are in seconds on one steady clock."""

    rate: float
    capacity: float
    tokens: float
    filled_at: float

    def take(self, count: int, now: float) -> float:
        """Take tokens, or none; gives the seconds until there are enough, 0 when they were taken."""
        self.tokens = min(self.capacity, self.tokens + (now - self.filled_at) * self.rate)
        self.filled_at = now
        # What is more than the bucket ever holds may go when it is full, and leaves it owing.
        wanted = min(count, self.capacity)
        if self.tokens >= wanted:
            self.tokens -= count
            return 0.0
        return (wanted - self.tokens) / self.rate


@dataclass(slots=True)
class RateLimits:
    """The buckets of all games, in one process of `processes` that share the load."""

    burst: timedelta
    processes: int = 1
    _buckets: dict[str, Bucket] = field(default_factory=dict)

    def take(self, game: str, rate: int, count: int, now: float) -> None:
        """Let so many events of a game in.

        Raises:
            TooManyEventsError: the game is over its rate.
        """
        share = rate / self.processes
        bucket = self._buckets.get(game)
        if bucket is None or bucket.rate != share:
            capacity = share * self.burst.total_seconds()
            bucket = self._buckets[game] = Bucket(share, capacity, capacity, now)
        if wait := bucket.take(count, now):
            raise TooManyEventsError(f"the game's rate is {rate} events a second", timedelta(seconds=wait))


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
