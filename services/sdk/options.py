"""Options of a client: batches, retries, buffer, compression."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from pathlib import Path

_KIB, _MIB = 2**10, 2**20


class Compression(Enum):
    """The compression of request bodies: their content encoding."""

    NONE = "identity"
    GZIP = "gzip"


class Overflow(Enum):
    """The events that are lost when the buffer is full."""

    REFUSE_NEWEST = "refuse_newest"
    DROP_OLDEST = "drop_oldest"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """A batch is sent when it has this many events or bytes, or when its oldest event has waited this long."""

    events: int = 500
    bytes: int = 512 * _KIB
    wait: timedelta = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The wait before a batch is sent again: a random time up to a limit that doubles with each attempt.

    Source: https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/ (full jitter).
    """

    first: timedelta = timedelta(milliseconds=250)
    longest: timedelta = timedelta(seconds=30)
    # While the gateway does not take the key, or is not at the address: a person has to act.
    longest_denied: timedelta = timedelta(minutes=5)

    def limit_seconds(self, attempts: int, *, is_denied: bool = False) -> float:
        """Return the limit in seconds after a number of attempts (1 or more)."""
        # Bounded: a larger exponent makes a large number without use.
        doubled: float = self.first.total_seconds() * 2 ** min(attempts - 1, 62)
        return min(doubled, (self.longest_denied if is_denied else self.longest).total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferLimits:
    """The number of events that may wait for their outcome, and the place where they are kept.

    Args:
        file: keeps the events when the process ends; without it they are lost with the process.
    """

    bytes: int = 8 * _MIB
    overflow: Overflow = Overflow.REFUSE_NEWEST
    file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All options; `timeout` is that of one request."""

    batch: BatchLimits = field(default_factory=BatchLimits)
    backoff: Backoff = field(default_factory=Backoff)
    buffer: BufferLimits = field(default_factory=BufferLimits)
    compression: Compression = Compression.GZIP
    timeout: timedelta = timedelta(seconds=30)
