"""Two streams that write the same tables: what one has taken, the other must not take again.

A stream looks at what the other one has decided before it decides a batch, and once more in its turn, when it is about
to settle it; whoever settles does so alone. If the other has settled an event meanwhile that this batch has too, the
batch is decided again. So of an event that comes both ways one is taken, in whichever order they come.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gamelake.layers.identity import Identities
from gamelake.layers.known_events import ANY_TIME, Events, Flags, KnownEvents
from gamelake.layers.routing import NOWHERE
from gamelake.model.errors import LeaseHeldError, StoreError
from gamelake.model.naming import SETTLING_LEASE, SILVER_EVENTS, events_folder, generation_path
from gamelake.storage.leases import Lease, Pace
from gamelake.storage.manifests import BatchManifest, EventsFile, Manifests, TableFiles
from gamelake.storage.store import Store
from gamelake.streaming.dedup_window import batch_of
from gamelake.streaming.duplicates import (
    EVENT_ID,
    CandidateEvents,
    DuplicateFilter,
    WorkerMemory,
    count_by_game,
    rows_with_id,
)
from gamelake.streaming.plan import KnownFile, OtherSourceEvents

# Where the identities of events stand in the files of the stream that reads files.
EVENTS_OF_FILES = 2

# What a worker process has read, by lakehouse and seed: kept from task to task.
_memories: dict[tuple[str, str], WorkerMemory] = {}


@dataclass
class CrossSourceDuplicateFilter:
    """Finds what was taken elsewhere, and has another filter look at the rest."""

    then: DuplicateFilter
    taken: tuple[OtherSourceEvents, ...]
    store: Store
    _counts: Counter[str] = field(default_factory=Counter)

    def duplicates(self, seen: CandidateEvents) -> Flags:
        """Which of the events are duplicates; the others count as taken from now on."""
        elsewhere = self._elsewhere(seen)
        self._counts += count_by_game(seen, elsewhere)
        rest = replace(seen, codes=np.where(elsewhere, NOWHERE, seen.codes)) if elsewhere.any() else seen
        return elsewhere | self.then.duplicates(rest)

    def _elsewhere(self, seen: CandidateEvents) -> Flags:
        result = np.zeros(len(seen.codes), np.bool_)
        rows = rows_with_id(seen)
        if not len(rows):
            return result
        ids = seen.events.column(EVENT_ID).take(pa.array(rows))
        for each in self.taken:
            high, rest = Identities(each.seed).of(seen.tables, seen.codes[rows], ids)
            events = Events.of(high, rest, np.full(len(rows), ANY_TIME, np.int64))
            result[rows] |= self._known(each).have(events)
        return result

    def _known(self, taken: OtherSourceEvents) -> KnownEvents:
        key = (self.store.location.uri, taken.seed)
        memory = _memories.setdefault(key, WorkerMemory(ANY_TIME))
        return memory.events(EVENTS_OF_FILES, taken.files, self.store)

    def write(self) -> tuple[EventsFile | None, dict[str, int]]:
        """Write what was taken since the last time as one file; gives it, and the duplicates by game."""
        counts, self._counts = self._counts, Counter()
        file, others = self.then.write()
        return file, dict(counts + Counter(others))


_IDENTITY = ["game_name", "event_id"]
_TRIES = 20
# What is done alone takes some requests; a holder on another machine that gives no sign for so long has died.
_PACE = Pace(renew=1.0, patience=6.0, look=0.02, wait=5.0)


class CrossSourceLock(Protocol):
    """The streams that write the same tables besides."""

    def look(self) -> None:
        """See how far they are; what they settle from now on is looked for in `turn`."""

    def turn(self, tables: Sequence[TableFiles]) -> AbstractContextManager[bool]:
        """While the block lasts nobody else settles; gives whether nobody has settled what these tables get."""


class NoOpCrossSourceLock:
    """No other stream writes these tables."""

    def look(self) -> None:
        """There is nobody to look at."""

    @contextmanager
    def turn(self, tables: Sequence[TableFiles]) -> Iterator[bool]:
        """It is always one's turn."""
        del tables
        yield True


@dataclass
class ConcurrentStream:
    """Another stream, which need not exist yet; `last` is what it decided last, as far as was looked."""

    store: Store
    stream: str
    last: BatchManifest | None = None
    _next: int | None = None
    _untold: list[BatchManifest] = field(default_factory=list)
    _opened: bool = False

    def look(self) -> None:
        """See how far it is."""
        self.news()

    def news(self) -> list[BatchManifest]:
        """What it has decided since this was asked before; nothing the first time."""
        self._see()
        told, self._untold = self._untold, []
        return told

    def _see(self) -> list[BatchManifest]:
        """What it has decided since it was seen, which is yet to be told."""
        manifests = Manifests(self.store, self.stream)
        if self._next is None:
            self.last = next(iter(manifests.last(1)), None)
            self._next = 0 if self.last is None else self.last.batch_id + 1
            return []
        found: list[BatchManifest] = []
        while (manifest := manifests.read(self._next + len(found))) is not None:
            found.append(manifest)
        self._next += len(found)
        self.last = found[-1] if found else self.last
        self._untold += found
        return found

    @contextmanager
    def turn(self, tables: Sequence[TableFiles]) -> Iterator[bool]:
        """While the block lasts it settles nothing; gives whether it has settled none of the events of these tables."""
        if not self._is_opened():
            yield True
            return
        with commit_lease(self.store):
            yield not self._has_any_of(tables)

    def _has_any_of(self, tables: Sequence[TableFiles]) -> bool:
        theirs = [entry for manifest in self._see() for entry in manifest.tables]
        return bool(theirs) and have_common_events(self.store, theirs, tables)

    def _is_opened(self) -> bool:
        # A stream that is opened takes seconds to settle its first batch: here it can't be too late to see it.
        self._opened = self._opened or self.store.get(generation_path(self.stream, 0)) is not None
        return self._opened


@dataclass
class ConcurrentFilesStream:
    """The stream of files beside the one of records, and the identities of the events that it has taken."""

    sibling: ConcurrentStream
    _events: dict[str, tuple[str, KnownFile]] = field(default_factory=dict)
    _recalled: bool = False

    @property
    def taken(self) -> tuple[OtherSourceEvents, ...]:
        """The files of these identities, by the seed that they were made with."""
        by_seed: dict[str, list[KnownFile]] = {}
        for seed, file in self._events.values():
            by_seed.setdefault(seed, []).append(file)
        return tuple(OtherSourceEvents(seed, tuple(files)) for seed, files in by_seed.items())

    def look(self) -> None:
        """See how far it is, and which events it has taken."""
        if self._recalled:
            self._remember(self.sibling.news())
        else:
            self.sibling.look()
            self._recall()

    def turn(self, tables: Sequence[TableFiles]) -> AbstractContextManager[bool]:
        """While the block lasts it settles nothing; gives whether it has settled none of the events of these tables."""
        return self.sibling.turn(tables)

    def _recall(self) -> None:
        store, stream = self.sibling.store, self.sibling.stream
        batches = {batch_of(path) for path in store.paths(events_folder(stream))}
        self._remember(Manifests(store, stream).those(sorted(batches)))
        self._recalled = True

    def _remember(self, manifests: Iterable[BatchManifest]) -> None:
        for manifest in manifests:
            for file in manifest.events:
                for each in file.sections:
                    if each.partition == EVENTS_OF_FILES:
                        known = KnownFile(file.path, each.start, each.events, ANY_TIME)
                        self._events[file.path] = (manifest.query_id, known)


def commit_lease(store: Store) -> Lease:
    """The right to settle alone, for a block; LeaseHeldError where another process settles for ever."""
    return _Patient(store, SETTLING_LEASE, "the settling of batches", _PACE)


class _Patient(Lease):
    """A lease whose next number another one may get; then the one after is asked for."""

    def __enter__(self) -> "_Patient":
        for _ in range(_TRIES):
            try:
                super().__enter__()
            except LeaseHeldError as error:
                refused = error
            else:
                return self
        raise refused


def have_common_events(store: Store, some: Sequence[TableFiles], others: Sequence[TableFiles]) -> bool:
    """Whether an event of one list of tables is in the other's as well, by game and id."""
    left, right = _identified(store, some), _identified(store, others)
    return bool(len(left) and len(right) and len(left.join(right, _IDENTITY, join_type="left semi")))


def _identified(store: Store, tables: Sequence[TableFiles]) -> pa.Table:
    found = [
        _read(store, f"{SILVER_EVENTS}/{file.path}")
        for entry in tables
        if entry.table == SILVER_EVENTS
        for file in entry.files
    ]
    return pa.concat_tables(found) if found else pa.table({name: pa.array([], pa.string()) for name in _IDENTITY})


def _read(store: Store, path: str) -> pa.Table:
    content = store.get(path)
    if content is None:
        raise StoreError(f"{path} is gone, which a batch has just written")
    return pq.read_table(pa.BufferReader(content), columns=_IDENTITY)
