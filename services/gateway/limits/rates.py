"""The rate of each key, as token buckets."""

from dataclasses import dataclass, field
from datetime import timedelta

from services.gateway.authentication import GameKey
from services.gateway.errors import RateLimitedError


@dataclass(slots=True)
class TokenBucket:
    """Holds at most `capacity` tokens and gains `rate` per second; times are seconds of one monotonic clock."""

    rate: float
    capacity: float
    tokens: float
    filled_at: float

    def take(self, count: int, now: float) -> float:
        """Take all `count` tokens or none. Return the seconds until there are enough, 0 when they were taken.

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
    """The token buckets of all keys, in one process of `processes` that share the load."""

    burst: timedelta
    processes: int = 1
    _buckets: dict[str, TokenBucket] = field(default_factory=dict)

    def take(self, key: GameKey, count: int, now: float) -> None:
        """Count events against their key's rate.

        Raises:
            RateLimitedError: the key is over its rate.
        """
        share = key.rate / self.processes
        capacity = share * self.burst.total_seconds()
        bucket = self._buckets.setdefault(key.id, TokenBucket(share, capacity, capacity, now))
        # The rate may have changed since; what was sent before still counts.
        bucket.rate, bucket.capacity = share, capacity
        if wait := bucket.take(count, now):
            message = f"the key is over its rate of {key.rate} events per second"
            raise RateLimitedError(message, timedelta(seconds=wait))
