"""Limits on events: a rate for each game (token bucket), and how many events one process may hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from services.gateway.errors import RateLimitedError, UnavailableError


@dataclass(slots=True)
class TokenBucket:
    """Holds at most `capacity` tokens and gains `rate` per second; times are seconds of one monotonic clock."""

    rate: float
    capacity: float
    tokens: float
    filled_at: float

    def take(self, count: int, now: float) -> float:
        """Take all `count` tokens or none; gives the seconds until there are enough, 0 when they were taken.

        A count above the capacity is allowed when the bucket is full, and leaves a negative balance.
        """
        self.tokens = min(self.capacity, self.tokens + (now - self.filled_at) * self.rate)
        self.filled_at = now
        wanted = min(count, self.capacity)
        if self.tokens >= wanted:
            self.tokens -= count
            return 0.0
        return (wanted - self.tokens) / self.rate


@dataclass(slots=True)
class RateLimits:
    """The token buckets of all games, in one process of `processes` that share the load."""

    burst: timedelta
    processes: int = 1
    _buckets: dict[str, TokenBucket] = field(default_factory=dict)

    def take(self, game: str, rate: int, count: int, now: float) -> None:
        """Count events of a game against its rate (events per second).

        Raises:
            RateLimitedError: the game is over its rate.
        """
        share = rate / self.processes
        bucket = self._buckets.get(game)
        if bucket is None or bucket.rate != share:
            capacity = share * self.burst.total_seconds()
            bucket = self._buckets[game] = TokenBucket(share, capacity, capacity, now)
        if wait := bucket.take(count, now):
            raise RateLimitedError(f"the game is over its rate of {rate} events per second", timedelta(seconds=wait))


class EventCapacity:
    """How many events one process may hold, from parsing until Kafka has confirmed them; for one event loop."""

    def __init__(self, max_events: int) -> None:
        self._max_events = max_events
        self._events = 0

    @contextmanager
    def reserved(self, events: int) -> Iterator[None]:
        """Reserve capacity for the events of one request while the block runs; a single request is always admitted.

        Raises:
            UnavailableError: the process holds too many events, because the vault or Kafka is slow.
        """
        if self._events and self._events + events > self._max_events:
            raise UnavailableError("too many events wait for the vault and Kafka; send again later")
        self._events += events
        try:
            yield
        finally:
            self._events -= events
