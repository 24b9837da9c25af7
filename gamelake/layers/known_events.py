"""Sets of events as sorted arrays: finds the duplicates of many events at once, within a window of time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile, gettempdir
from typing import Self

import numpy as np

from gamelake.model.arrays import Flags, Ints, Words
from gamelake.model.errors import StoreError

# The size of an encoded event.
EVENT_BYTES = 16
# The time of events that are duplicates whenever they were received.
ANY_TIME = 0
_HALF = np.uint64(32)
_SECONDS = np.uint64(0xFFFF_FFFF)
# Runs are merged until each has this many times the events of the next: fewer searches, more merging.
_RATIO = 3
_SWEEPS = 4  # per window


@dataclass(frozen=True, slots=True)
class Events:
    """Events by identity and Kafka timestamp: 16 bytes each, in two uint64 arrays of the same length.

    Attributes:
        high: the first 64 bits of the identities; see `gamelake.layers.identity`.
        low: the other 32 bits of the identities, then 32 bits of seconds since 1970.
    """

    high: Words
    low: Words

    @classmethod
    def of(cls, high: Words, rest: Words, seconds: Ints) -> Self:
        """Build events from three arrays of the same length.

        Args:
            high: uint64, the first 64 bits of the identities.
            rest: uint64, the other 32 bits.
            seconds: int64, Kafka timestamps in seconds since 1970.
        """
        return cls(high, (rest << _HALF) | seconds.astype(np.uint64))

    @classmethod
    def joined(cls, parts: Sequence["Events"]) -> Self:
        """Join the events of one part or more, in order."""
        return cls(np.concatenate([part.high for part in parts]), np.concatenate([part.low for part in parts]))

    @classmethod
    def decode(cls, content: bytes | mmap) -> Self:
        """Decode events from the bytes of `encode`."""
        columns = np.frombuffer(content, "<u8").reshape(2, -1)
        return cls(columns[0], columns[1])

    def encode(self) -> bytes:
        """Encode the events as bytes: all of `high`, then all of `low`, little-endian."""
        return self.high.astype("<u8").tobytes() + self.low.astype("<u8").tobytes()

    @property
    def rest(self) -> Words:
        """The last 32 bits of the identities (uint64)."""
        return self.low >> _HALF

    @property
    def seconds(self) -> Ints:
        """The Kafka timestamps in seconds since 1970 (int64)."""
        return (self.low & _SECONDS).astype(np.int64)

    def __len__(self) -> int:
        """The number of events."""
        return len(self.high)

    def take(self, rows: Ints | Flags) -> "Events":
        """Return the events at some positions (int64), or where a mask (bool, one for each event) is true."""
        return Events(self.high[rows], self.low[rows])

    def sorted(self) -> "Events":
        """Return the events in ascending order of `high`; stable."""
        return self.take(np.argsort(self.high, kind="stable"))


@dataclass(slots=True)
class KnownEvents:
    """A growing set of events, kept as runs of sorted events, each much longer than the next, and in scratch files.

    Attributes:
        window_seconds: events of one identity whose Kafka timestamps are further apart are not duplicates.
    """

    window_seconds: int
    _runs: list[Events] = field(default_factory=list)
    _swept: int = 0
    # Runs in scratch files, each with the time of its newest event.
    _spilled: list[tuple[Events, int]] = field(default_factory=list)

    def __len__(self) -> int:
        """The number of events, with those that are too old but not yet deleted."""
        return self.in_memory + self.spilled

    @property
    def in_memory(self) -> int:
        """The number of events in memory, without those in scratch files."""
        return sum(len(run) for run in self._runs)

    @property
    def spilled(self) -> int:
        """The number of events in scratch files."""
        return sum(len(run) for run, _ in self._spilled)

    def spill(self) -> None:
        """Move the longest run to a scratch file; there must be events in memory.

        It is never merged again: it covers a part of the window, and is deleted as a whole once that part has passed.

        Raises:
            StoreError: TMPDIR has no room for it.
        """
        run = self._runs[0]
        self._spilled.append((on_disk(run), int(run.seconds.max())))
        del self._runs[0]

    def add(self, events: Events, oldest: int = 0) -> None:
        """Add events; those before `oldest` (seconds since 1970) may be deleted."""
        if not len(events):
            return
        self._spilled = [each for each in self._spilled if each[1] >= oldest]
        self._runs.append(events.sorted())
        while len(self._runs) > 1 and len(self._runs[-2]) < _RATIO * len(self._runs[-1]):
            both = Events.joined(self._runs[-2:])
            self._runs[-2:] = [_distinct(both.take(both.seconds >= oldest).sorted())]
        # Long runs are seldom merged: events that are too old are deleted from them four times per window.
        if oldest - self._swept > self.window_seconds // _SWEEPS:
            self._runs = [run.take(run.seconds >= oldest) for run in self._runs]
            self._swept = oldest

    def have(self, events: Events) -> Flags:
        """Find the events that are duplicates of one in the set, within the window before or after.

        Returns:
            One bool for each event, in the order of `events`.
        """
        found = np.zeros(len(events), np.bool_)
        runs = [*self._runs, *(run for run, _ in self._spilled)]
        if not runs:
            return found
        # Sorted, so that consecutive searches read the same part of each run.
        order = np.argsort(events.high)
        asked = events.take(order)
        for run in runs:
            found[order] |= self._in_run(run, asked)
        return found

    def _in_run(self, run: Events, asked: Events) -> Flags:
        found = np.zeros(len(asked), np.bool_)
        at = np.searchsorted(run.high, asked.high)
        open_rows = np.flatnonzero(at < len(run))
        while len(open_rows):
            places = at[open_rows]
            same_high = run.high[places] == asked.high[open_rows]
            open_rows, places = open_rows[same_high], places[same_high]
            hit = self._are_one(run.take(places), asked.take(open_rows))
            found[open_rows[hit]] = True
            # The next entry may have the same `high`, such as an event that was accepted again after the window.
            open_rows = open_rows[~hit]
            at[open_rows] += 1
            open_rows = open_rows[at[open_rows] < len(run)]
        return found

    def _are_one(self, known: Events, asked: Events) -> Flags:
        apart = np.abs(known.seconds - asked.seconds)
        return np.asarray((known.rest == asked.rest) & (apart <= self.window_seconds), np.bool_)


def _distinct(events: Events) -> Events:
    """Sorted events without repetitions: a merged file of identities repeats those of files that were read before."""
    is_first = np.ones(len(events), np.bool_)
    is_first[1:] = (events.high[1:] != events.high[:-1]) | (events.low[1:] != events.low[:-1])
    return events if is_first.all() else events.take(is_first)


def on_disk(events: Events) -> Events:
    """Return the same events, at least one, memory-mapped from an unnamed file in TMPDIR.

    Raises:
        StoreError: TMPDIR has no room for them.
    """
    try:
        with TemporaryFile() as file:
            for column in (events.high, events.low):
                # Not `encode`: the copies would take as much memory again.
                file.write(np.ascontiguousarray(column, "<u8").data)
            file.flush()
            return Events.decode(mmap(file.fileno(), 0, access=ACCESS_READ))
    except OSError as error:
        raise StoreError(
            f"the ids of {len(events)} events can't be written to {gettempdir()}: {error.strerror}. Let TMPDIR name a "
            "disk with room for the deduplication window (docs/settings.md), or lower GAMELAKE_DEDUP_MAX_EVENTS"
        ) from error


def repeated(events: Events, window_seconds: int) -> Flags:
    """Find the events that are duplicates of an earlier one of the same list, within the window.

    Returns:
        One bool for each event, in the order of `events`.
    """
    result = np.zeros(len(events), np.bool_)
    in_order = np.sort(events.high)
    shared = in_order[1:][in_order[1:] == in_order[:-1]]
    if len(shared):
        rows = np.flatnonzero(np.isin(events.high, shared))
        result[rows] = _repeated(events.take(rows), window_seconds)
    return result


def _repeated(events: Events, window_seconds: int) -> Flags:
    order = np.lexsort((events.rest, events.high))
    high, rest, seconds = events.high[order], events.rest[order], events.seconds[order]
    starts = np.ones(len(events), np.bool_)
    starts[1:] = (high[1:] != high[:-1]) | (rest[1:] != rest[:-1])
    first = np.maximum.accumulate(np.where(starts, np.arange(len(events)), 0))
    again = ~starts
    far = again & (np.abs(seconds - seconds[first]) > window_seconds)
    for start in np.unique(first[far]):
        _walk(start, first, seconds, again, window_seconds)
    result = np.zeros(len(events), np.bool_)
    result[order] = again
    return result


def _walk(start: int, first: Ints, seconds: Ints, again: Flags, window_seconds: int) -> None:
    """Decide the occurrences of one event one by one, where they span more than a window."""
    kept: list[int] = []
    stop = int(np.searchsorted(first, start, side="right"))
    for place in range(start, stop):
        again[place] = any(abs(int(seconds[place]) - moment) <= window_seconds for moment in kept)
        if not again[place]:
            kept.append(int(seconds[place]))
