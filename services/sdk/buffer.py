"""The buffer of events that are not settled: bounded, in order, in memory and optionally in a file."""

import logging
import time
from collections import deque
from collections.abc import Sequence
from threading import TIMEOUT_MAX, Condition

from .batches import ClientStats, EventFormat, EventGroup
from .errors import BufferFileError, BufferFullError, ClosedError
from .journal import Journal
from .options import BatchLimits, BufferLimits, Overflow

log = logging.getLogger(__name__)

_DUE = float("-inf")


class Buffer:
    """Any thread may add events; one thread takes batches and settles them.

    Raises:
        BufferFileError: the file can't be used.
    """

    def __init__(self, limits: BufferLimits, batch: BatchLimits, stats: ClientStats) -> None:
        self._limits = limits
        self._batch = batch
        self._stats = stats
        self._journal = Journal(limits.file) if limits.file is not None else None
        self._changed = Condition()
        self._waiting: deque[tuple[EventGroup, float]] = deque()
        self._in_flight: Sequence[EventGroup] = ()
        self._events = self._bytes = 0
        self._ticket = 0
        self._flushing = 0
        self._closed = False
        for group in self._journal.waiting() if self._journal is not None else ():
            self._add(group, _DUE)

    @property
    def events(self) -> int:
        """Events that are not settled."""
        return self._events

    def put(self, event_format: EventFormat, count: int, payload: bytes) -> int:
        """Add events of one format. Return their ticket.

        Raises:
            BufferFullError: the buffer is full.
            BufferFileError: the file could not be written.
            ClosedError: the buffer is closed.
        """
        with self._changed:
            if self._closed:
                raise ClosedError("the client is closed")
            self._make_space(count, len(payload))
            group = EventGroup(self._ticket + 1, event_format, count, payload)
            if self._journal is not None:
                self._journal.append(group)
            self._add(group, time.monotonic())
            self._stats.buffered += count
            self._changed.notify_all()
            return group.ticket

    def wait_for_space(self, size: int, seconds: float) -> bool:
        """Wait until there is space for `size` bytes; False after the timeout, or if the buffer is closed."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closed or self._has_space(size), seconds) and not self._closed

    def flush(self, seconds: float) -> bool:
        """Make all buffered events due at once and wait until they are settled; False after the timeout."""
        with self._changed:
            last = self._ticket
            self._flushing += 1
            self._changed.notify_all()
            try:
                self._changed.wait_for(lambda: self._closed or self._oldest() > last, seconds)
                return self._oldest() > last
            finally:
                self._flushing -= 1

    def take(self) -> Sequence[EventGroup]:
        """Wait for the next batch, of one format; empty when the buffer is closed.

        The batch that was taken last comes again until it is settled.
        """
        with self._changed:
            while not self._closed:
                if self._in_flight:
                    return self._in_flight
                wait = self._seconds_until_due()
                if wait is not None and wait <= 0:
                    self._in_flight = self._next_batch()
                    return self._in_flight
                self._changed.wait(None if wait is None else min(wait, TIMEOUT_MAX))
            return ()

    def settle(self) -> None:
        """Remove the batch that was taken last."""
        with self._changed:
            self._remove(self._in_flight)
            self._in_flight = ()
            self._changed.notify_all()

    def close(self) -> None:
        """Refuse further events; those that are not settled stay in the file."""
        with self._changed:
            if not self._closed and self._journal is not None:
                self._journal.close()
                self._journal = None
            self._closed = True
            self._changed.notify_all()

    def _add(self, group: EventGroup, since: float) -> None:
        self._waiting.append((group, since))
        self._events += group.count
        self._bytes += len(group.payload)
        self._ticket = group.ticket

    def _has_space(self, size: int) -> bool:
        return self._bytes + size <= self._limits.bytes

    def _make_space(self, count: int, size: int) -> None:
        fits = size + sum(len(group.payload) for group in self._in_flight) <= self._limits.bytes
        if self._limits.overflow is Overflow.DROP_OLDEST and fits:
            while not self._has_space(size):
                oldest, _ = self._waiting.popleft()
                self._remove((oldest,))
                self._stats.dropped += oldest.count
        if not self._has_space(size):
            self._stats.overflowed += count
            raise BufferFullError(f"{self._bytes} of {self._limits.bytes} bytes are in use, {size} more are needed")

    def _remove(self, groups: Sequence[EventGroup]) -> None:
        if not groups:
            return
        self._events -= sum(group.count for group in groups)
        self._bytes -= sum(len(group.payload) for group in groups)
        if self._journal is None:
            return
        try:
            self._journal.settle(groups)
        except BufferFileError as error:
            log.warning(
                "settled events stay in the file and will be sent again after a restart: %s",
                error,
                extra={"event": "settled_events_kept"},
            )

    def _oldest(self) -> float:
        """The lowest ticket that is not settled."""
        if self._in_flight:
            return self._in_flight[0].ticket
        return self._waiting[0][0].ticket if self._waiting else float("inf")

    def _seconds_until_due(self) -> float | None:
        """Return the seconds until a batch is due; None if there is nothing to send."""
        if not self._waiting:
            return None
        if self._flushing or self._events >= self._batch.events or self._bytes >= self._batch.bytes:
            return 0.0
        return self._waiting[0][1] + self._batch.wait.total_seconds() - time.monotonic()

    def _next_batch(self) -> Sequence[EventGroup]:
        first, _ = self._waiting.popleft()
        batch, events, size = [first], first.count, len(first.payload)
        while self._waiting:
            group, _ = self._waiting[0]
            events, size = events + group.count, size + len(group.payload)
            if group.event_format is not first.event_format or events > self._batch.events or size > self._batch.bytes:
                break
            batch.append(group)
            self._waiting.popleft()
        return batch
