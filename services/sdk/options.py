"""How a client behaves: what it sends at once, how it waits, and how much it keeps."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from pathlib import Path

_KIB, _MIB = 2**10, 2**20


class Packing(Enum):
    """How a body travels."""

    NONE = "identity"
    GZIP = "gzip"


class Overflow(Enum):
    """What gives way when the buffer is full."""

    REFUSE_NEWEST = "refuse_newest"
    DROP_OLDEST = "drop_oldest"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """A batch is sent when it has so many events or bytes, or when its first event has waited so long."""

    events: int = 500
    bytes: int = 512 * _KIB
    wait: timedelta = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long to wait before a batch is sent again: anything up to a limit that doubles with each attempt.

    Source: https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/ (full jitter).
    """

    first: timedelta = timedelta(milliseconds=250)
    longest: timedelta = timedelta(seconds=30)

    def limit_seconds(self, attempts: int) -> float:
        """The longest wait after so many attempts, of which there was at least one."""
        # No client tries so often that 2 ** 62 were not enough; beyond it the number would grow without use.
        doubled: float = self.first.total_seconds() * 2 ** min(attempts - 1, 62)
        return min(doubled, self.longest.total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferLimits:
    """How much may wait for an answer, and where.

    Args:
        file: outlives the process; without it what waits is lost with the process.
    """

    bytes: int = 8 * _MIB
    overflow: Overflow = Overflow.REFUSE_NEWEST
    file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All of it; `patience` is for one request."""

    batch: BatchLimits = field(default_factory=BatchLimits)
    backoff: Backoff = field(default_factory=Backoff)
    buffer: BufferLimits = field(default_factory=BufferLimits)
    packing: Packing = Packing.GZIP
    patience: timedelta = timedelta(seconds=30)
