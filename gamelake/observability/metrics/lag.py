"""The lag of a query: its committed positions compared with the records that Kafka holds."""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import RLock

_PACE_SECONDS = 300.0
_LEAST_OVERDUE_SECONDS = 60.0
UNKNOWN = math.nan


@dataclass(frozen=True, slots=True)
class OffsetSpan:
    """The span that Kafka holds of a partition: the first offset, and the one that the next record will get."""

    earliest: int
    end: int


@dataclass(frozen=True, slots=True)
class Oldest:
    """The first record at an offset or after it, and the time when Kafka received it (seconds since 1970)."""

    position: int
    timestamp: float


@dataclass(frozen=True, slots=True)
class LagReading:
    """Kafka's response at one moment; `oldest` has the partitions in the request that it answered for."""

    at: float
    spans: Mapping[int, OffsetSpan]
    oldest: Mapping[int, Oldest] = field(default_factory=dict)


class Lag:
    """The lag of one query over all partitions of its topic; many threads may use it.

    Args:
        positions: by partition, the next offset to commit; a missing partition is read from its beginning.
        trigger_seconds: time that is meant to pass between the starts of two batches.
    """

    def __init__(self, positions: Mapping[int, int], trigger_seconds: float) -> None:
        self._lock = RLock()
        self._positions = dict(positions)
        self._trigger_seconds = trigger_seconds
        self._reading: LagReading | None = None
        self._known: dict[int, Oldest] = {}
        self._guessed: dict[int, Oldest] = {}
        self._history: deque[tuple[float, int]] = deque()
        self._last_batch_seconds = 0.0
        self._left = 0

    def committed(self, positions: Mapping[int, int], batch_seconds: float) -> None:
        """Record that all tables have a batch, which ends before `positions`."""
        with self._lock:
            self._positions.update(positions)
            self._last_batch_seconds = batch_seconds

    def planned(self, left: int) -> None:
        """Record the number of offsets that the newest batch left when it was planned."""
        self._left = left

    def unread(self, spans: Mapping[int, OffsetSpan]) -> dict[int, int]:
        """Return the positions of partitions that are behind and whose oldest record is not known."""
        with self._lock:
            starts = {partition: self._start(partition, span) for partition, span in spans.items()}
            return {
                partition: start
                for partition, start in starts.items()
                if start < spans[partition].end and not _is_of(self._known.get(partition), start)
            }

    def update(self, reading: LagReading) -> None:
        """Update the lag with Kafka's response."""
        with self._lock:
            self._reading = reading
            for partition, span in reading.spans.items():
                self._note_oldest(partition, self._start(partition, span), reading)
            if self._history and reading.at < self._history[-1][0]:
                # The clock went back: no pace can be had of these.
                self._history.clear()
            self._history.append((reading.at, sum(self.behind().values())))
            while self._history[0][0] < reading.at - _PACE_SECONDS:
                self._history.popleft()

    def behind(self) -> dict[int, int]:
        """Return the offsets behind by partition; empty as long as Kafka has not responded."""
        with self._lock:
            spans = self._reading.spans if self._reading else {}
            return {partition: max(span.end - self._start(partition, span), 0) for partition, span in spans.items()}

    @property
    def last_poll(self) -> float:
        """The time of Kafka's last response, 0 if it never responded."""
        return self._reading.at if self._reading else 0.0

    def seconds_behind(self, now: float) -> float:
        """Return the age of the oldest record that is not committed, 0 when there is none."""
        with self._lock:
            if self._reading is None:
                return UNKNOWN
            late = [self._since(partition) for partition, count in self.behind().items() if count]
        # A producer's clock, which gives the timestamp, may be ahead of ours.
        return max(now - min(late), 0.0) if late else 0.0

    def catch_up_seconds(self, now: float) -> float:
        """Return the seconds until all is read at the pace of the last minutes.

        0 while the query is not behind, inf if never.
        """
        with self._lock:
            if self._reading is None:
                return UNKNOWN
            remaining = sum(self.behind().values())
            if not remaining or self._is_catching_up(now):
                return 0.0
            (first, then), (last, latest) = self._history[0], self._history[-1]
            closing = (then - latest) / (last - first) if last > first else 0.0
            return remaining / closing if closing > 0 else math.inf

    def retention_used(self) -> float:
        """Return the uncommitted share of the records that Kafka holds, in the partition where it is greatest."""
        with self._lock:
            if self._reading is None:
                return UNKNOWN
            held = {partition: span for partition, span in self._reading.spans.items() if span.end > span.earliest}
            behind = self.behind()
            return max((behind[each] / (span.end - span.earliest) for each, span in held.items()), default=0.0)

    def _is_catching_up(self, now: float) -> bool:
        patience = self._trigger_seconds + max(_LEAST_OVERDUE_SECONDS, 2 * self._last_batch_seconds)
        return not self._left and self.seconds_behind(now) <= patience

    def _start(self, partition: int, span: OffsetSpan) -> int:
        return max(self._positions.get(partition, 0), span.earliest)

    def _since(self, partition: int) -> float:
        # A commit since the last poll makes this too early, until the next poll, which is soon; never too late.
        known, guessed = self._known.get(partition), self._guessed[partition]
        return known.timestamp if known and _is_of(known, guessed.position) else guessed.timestamp

    def _note_oldest(self, partition: int, start: int, reading: LagReading) -> None:
        if partition in reading.oldest:
            self._known[partition] = reading.oldest[partition]
        if not _is_of(self._guessed.get(partition), start):
            # Should Kafka not say: since now, at the latest.
            self._guessed[partition] = Oldest(start, reading.at)


def _is_of(oldest: Oldest | None, start: int) -> bool:
    return oldest is not None and oldest.position == start
