"""What was handed over and is not settled: bounded, in order, in memory and in a file if one is given."""

import logging
import time
from collections import deque
from collections.abc import Sequence
from threading import Condition

from .batches import Figures, Form, Parcel
from .errors import BufferFileError, BufferFullError, ClosedError
from .journal import Journal
from .options import BatchLimits, BufferLimits, Overflow

log = logging.getLogger(__name__)

_AT_ONCE = float("-inf")


class Buffer:
    """Any thread may hand over; one thread takes batches and settles them.

    Raises:
        BufferFileError: the file can't be used.
    """

    def __init__(self, limits: BufferLimits, batch: BatchLimits, figures: Figures) -> None:
        self._limits = limits
        self._batch = batch
        self._figures = figures
        self._journal = Journal(limits.file) if limits.file is not None else None
        self._changed = Condition()
        self._waiting: deque[tuple[Parcel, float]] = deque()
        self._on_the_way: Sequence[Parcel] = ()
        self._events = self._bytes = 0
        self._ticket = 0
        self._hurried = 0
        self._closed = False
        for parcel in self._journal.waiting() if self._journal is not None else ():
            self._keep(parcel, _AT_ONCE)

    @property
    def events(self) -> int:
        """Events that are not settled."""
        return self._events

    def put(self, form: Form, count: int, payload: bytes) -> int:
        """Take events of one form; gives their ticket.

        Raises:
            BufferFullError: there is no room.
            BufferFileError: the file could not be written.
            ClosedError: the buffer was closed.
        """
        with self._changed:
            if self._closed:
                raise ClosedError("the client was closed")
            self._make_room(count, len(payload))
            parcel = Parcel(self._ticket + 1, form, count, payload)
            if self._journal is not None:
                self._journal.hand_over(parcel)
            self._keep(parcel, time.monotonic())
            self._figures.taken += count
            self._changed.notify_all()
            return parcel.ticket

    def await_room(self, size: int, seconds: float) -> bool:
        """Wait until there is room for so many bytes, or the time is over; says which."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closed or self._has_room(size), seconds) and not self._closed

    def await_settled(self, seconds: float) -> bool:
        """Have all that is here sent without delay, and wait until it is settled; says whether it is."""
        with self._changed:
            last = self._ticket
            self._hurried += 1
            self._changed.notify_all()
            try:
                self._changed.wait_for(lambda: self._closed or self._oldest() > last, seconds)
                return self._oldest() > last
            finally:
                self._hurried -= 1

    def take(self) -> Sequence[Parcel]:
        """Wait for the next batch, of one form; empty when the buffer was closed."""
        with self._changed:
            while not self._closed:
                wait = self._seconds_until_due()
                if wait is not None and wait <= 0:
                    self._on_the_way = self._next_batch()
                    return self._on_the_way
                self._changed.wait(wait)
            return ()

    def settle(self) -> None:
        """The batch that was taken last is settled."""
        with self._changed:
            self._forget(self._on_the_way)
            self._on_the_way = ()
            self._changed.notify_all()

    def close(self) -> None:
        """Take nothing any more; what is not settled stays in the file."""
        with self._changed:
            if not self._closed and self._journal is not None:
                self._journal.close()
                self._journal = None
            self._closed = True
            self._changed.notify_all()

    def _keep(self, parcel: Parcel, since: float) -> None:
        self._waiting.append((parcel, since))
        self._events += parcel.count
        self._bytes += len(parcel.payload)
        self._ticket = parcel.ticket

    def _has_room(self, size: int) -> bool:
        return self._bytes + size <= self._limits.bytes

    def _make_room(self, count: int, size: int) -> None:
        fits = size + sum(len(parcel.payload) for parcel in self._on_the_way) <= self._limits.bytes
        if self._limits.overflow is Overflow.DROP_OLDEST and fits:
            while not self._has_room(size):
                oldest, _ = self._waiting.popleft()
                self._forget((oldest,))
                self._figures.dropped += oldest.count
        if not self._has_room(size):
            self._figures.turned_away += count
            raise BufferFullError(f"{self._bytes} bytes of events wait already")

    def _forget(self, parcels: Sequence[Parcel]) -> None:
        if not parcels:
            return
        self._events -= sum(parcel.count for parcel in parcels)
        self._bytes -= sum(len(parcel.payload) for parcel in parcels)
        if self._journal is None:
            return
        try:
            self._journal.settle(parcels)
        except BufferFileError as error:
            log.warning("events that are settled will be sent again after a restart: %s", error)

    def _oldest(self) -> float:
        """The lowest ticket that is not settled."""
        if self._on_the_way:
            return self._on_the_way[0].ticket
        return self._waiting[0][0].ticket if self._waiting else float("inf")

    def _seconds_until_due(self) -> float | None:
        """How long until a batch should go; None if there is nothing to send."""
        if not self._waiting:
            return None
        if self._hurried or self._events >= self._batch.events or self._bytes >= self._batch.bytes:
            return 0.0
        return self._waiting[0][1] + self._batch.wait.total_seconds() - time.monotonic()

    def _next_batch(self) -> Sequence[Parcel]:
        first, _ = self._waiting.popleft()
        batch, events, size = [first], first.count, len(first.payload)
        while self._waiting:
            parcel, _ = self._waiting[0]
            events, size = events + parcel.count, size + len(parcel.payload)
            if parcel.form is not first.form or events > self._batch.events or size > self._batch.bytes:
                break
            batch.append(parcel)
            self._waiting.popleft()
        return batch
