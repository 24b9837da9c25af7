"""The events that silver has, as sorted arrays: which of many others are among them, within a time of each other."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import Self

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

# The time of an event that is the same one whenever it came.
ANY_TIME = 0
_HALF = np.uint64(32)
_SECONDS = np.uint64(0xFFFF_FFFF)
# A sequence of runs is merged until each is this many times the next one: fewer to look into, more to merge.
_RATIO = 3
_SWEEPS = 4  # a window


@dataclass(frozen=True, slots=True)
class Events:
    """Events by their identity and when Kafka took them in: 16 bytes each.

    `high` are the first 64 bits of the identities; `low` the other 32, before 32 bits of seconds since 1970.
    """

    high: Words
    low: Words

    @classmethod
    def of(cls, high: Words, rest: Words, seconds: Ints) -> Self:
        """Events from the parts of their identities and their times."""
        return cls(high, (rest << _HALF) | seconds.astype(np.uint64))

    @classmethod
    def joined(cls, parts: Sequence["Events"]) -> Self:
        """The events of several parts, of at least one."""
        return cls(np.concatenate([part.high for part in parts]), np.concatenate([part.low for part in parts]))

    @classmethod
    def unpack(cls, content: bytes | mmap) -> Self:
        """Events as `pack` wrote them."""
        columns = np.frombuffer(content, "<u8").reshape(2, -1)
        return cls(columns[0], columns[1])

    def pack(self) -> bytes:
        """The events as bytes, 16 each."""
        return self.high.astype("<u8").tobytes() + self.low.astype("<u8").tobytes()

    @property
    def rest(self) -> Words:
        """The last 32 bits of the identities."""
        return self.low >> _HALF

    @property
    def seconds(self) -> Ints:
        """When Kafka took the events in, since 1970."""
        return (self.low & _SECONDS).astype(np.int64)

    def __len__(self) -> int:
        """How many."""
        return len(self.high)

    def take(self, rows: Ints | Flags) -> "Events":
        """Some of the events."""
        return Events(self.high[rows], self.low[rows])

    def sorted(self) -> "Events":
        """By identity, those of one identity as they stand."""
        return self.take(np.argsort(self.high, kind="stable"))


@dataclass(slots=True)
class KnownEvents:
    """A set of events that grows; runs of sorted events, each much longer than the next."""

    window_seconds: int
    _runs: list[Events] = field(default_factory=list)
    _swept: int = 0

    def __len__(self) -> int:
        """How many events are kept, those that are too old but not yet forgotten included."""
        return sum(len(run) for run in self._runs)

    def add(self, events: Events, oldest: int = 0) -> None:
        """Take events in; what came before `oldest` (seconds since 1970) may be forgotten."""
        if not len(events):
            return
        self._runs.append(events.sorted())
        while len(self._runs) > 1 and len(self._runs[-2]) < _RATIO * len(self._runs[-1]):
            both = Events.joined(self._runs[-2:])
            self._runs[-2:] = [both.take(both.seconds >= oldest).sorted()]
        # Long runs are seldom merged: now and then they are looked through for what is too old.
        if oldest - self._swept > self.window_seconds // _SWEEPS:
            self._runs = [run.take(run.seconds >= oldest) for run in self._runs]
            self._swept = oldest

    def have(self, events: Events) -> Flags:
        """Which events are here with a time that is within the window of theirs, before or after."""
        found = np.zeros(len(events), np.bool_)
        # Sorted, so that neighbours look into the same part of each run.
        order = np.argsort(events.high)
        asked = events.take(order)
        for run in self._runs:
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
            # The next entry may have the same first half: an event that was let in again after the window, for one.
            open_rows = open_rows[~hit]
            at[open_rows] += 1
            open_rows = open_rows[at[open_rows] < len(run)]
        return found

    def _are_one(self, known: Events, asked: Events) -> Flags:
        apart = np.abs(known.seconds - asked.seconds)
        return np.asarray((known.rest == asked.rest) & (apart <= self.window_seconds), np.bool_)


def on_disk(events: Events) -> Events:
    """The same events in a file of TMPDIR that has no name, and goes with the last who looks into it; at least one."""
    with TemporaryFile() as file:
        file.write(events.pack())
        file.flush()
        return Events.unpack(mmap(file.fileno(), 0, access=ACCESS_READ))


def repeated(events: Events, window_seconds: int) -> Flags:
    """Which events are duplicates of an earlier one of the same list, in its order."""
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
    """Settle the sightings of one event one by one, which span more than a window."""
    kept: list[int] = []
    stop = int(np.searchsorted(first, start, side="right"))
    for place in range(start, stop):
        again[place] = any(abs(int(seconds[place]) - moment) <= window_seconds for moment in kept)
        if not again[place]:
            kept.append(int(seconds[place]))
