"""Cross-source deduplication: two streams write the same tables, and each event becomes one row.

Before a stream decides a batch, it reads what the other stream has decided. Then it decides by a settle record, which
needs the number after the newest one; if that has grown, the other stream has decided a batch meanwhile. Unless both
have an event in common, the number after that is tried, at once and with the same files; otherwise the batch is decided
again. So an event that comes from both sources is ingested once, in either order.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gamelake.layers.identity import Identities
from gamelake.layers.known_events import ANY_TIME, Events, Flags, KnownEvents
from gamelake.layers.routing import NOWHERE
from gamelake.model.errors import StoreError
from gamelake.model.naming import SILVER_EVENTS, events_folder, generation_path
from gamelake.storage.manifests import BatchManifest, EventsFile, Manifests, TableFiles
from gamelake.storage.settle_records import SettleRecords
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
from gamelake.streaming.plan import EVENTS_IN_MEMORY, KnownFile, OtherSourceEvents

# The partition number of events in the identity files of the stream that reads files.
EVENTS_OF_FILES = 2

# The identities that a worker process has read, by lakehouse and seed; kept from task to task.
_memories: dict[tuple[str, str], WorkerMemory] = {}

# Seconds. The shortest window that the stream of files can have, and the longest time from a plan to a task's reading.
_SHORTEST_WINDOW = 86_400
_LONGEST_BATCH = 3_600
_EXPIRED_AT_ONCE = 64
_IDENTITY = ["game_name", "event_id"]


@dataclass
class CrossSourceDuplicateFilter:
    """Finds events that another stream has ingested; `then` filters the others, `in_memory` is as in `DedupPlan`."""

    then: DuplicateFilter
    taken: tuple[OtherSourceEvents, ...]
    store: Store
    in_memory: int = EVENTS_IN_MEMORY
    _counts: Counter[str] = field(default_factory=Counter)

    def duplicates(self, seen: CandidateEvents) -> Flags:
        """Which events are duplicates (bool, one per event); the others count as ingested from now on."""
        by_others = self._taken_by_others(seen)
        self._counts += count_by_game(seen, by_others)
        rest = replace(seen, codes=np.where(by_others, NOWHERE, seen.codes)) if by_others.any() else seen
        return by_others | self.then.duplicates(rest)

    def _taken_by_others(self, seen: CandidateEvents) -> Flags:
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
        memory = _memories.setdefault(key, WorkerMemory(ANY_TIME, self.in_memory))
        return memory.events(EVENTS_OF_FILES, taken.files, self.store)

    def write(self) -> tuple[EventsFile | None, dict[str, int]]:
        """Write the identities since the last call as one file; gives it, and the number of duplicates by game."""
        counts, self._counts = self._counts, Counter()
        file, others = self.then.write()
        return file, dict(counts + Counter(others))


class DecisionOrder(Protocol):
    """The order in which streams that write the same tables decide their batches."""

    def refresh(self) -> None:
        """Read what the other streams have decided; `is_clear` compares with what they decide from now on."""

    def is_clear(self, tables: Sequence[TableFiles]) -> bool:
        """Whether no other stream has decided an event of these tables since `refresh`, or the last call."""

    def record(self, manifest: BatchManifest) -> bool:
        """Decide a batch; gives False if another stream has decided one since `is_clear`."""

    def decided(self) -> Sequence[TableFiles]:
        """The tables of the other stream's newest batch, which may not be committed yet."""


class NoOpDecisionOrder:
    """For a stream that alone writes its tables."""

    def refresh(self) -> None:
        """Do nothing."""

    def is_clear(self, tables: Sequence[TableFiles]) -> bool:
        """Give True."""
        del tables
        return True

    def record(self, manifest: BatchManifest) -> bool:
        """Give True: the manifest decides."""
        del manifest
        return True

    def decided(self) -> Sequence[TableFiles]:
        """None."""
        return ()


@dataclass
class ConcurrentStream:
    """Another stream, which need not exist yet; `last` is its last manifest at the last refresh."""

    store: Store
    stream: str
    last: BatchManifest | None = None
    _next: int | None = None
    _unreported: list[BatchManifest] = field(default_factory=list)
    _opened: bool = False
    _records: SettleRecords = field(init=False)

    def __post_init__(self) -> None:
        """Read nothing yet."""
        self._records = SettleRecords(self.store)

    def refresh(self) -> None:
        """Read its new manifests."""
        self.new_batches()

    def new_batches(self) -> list[BatchManifest]:
        """The manifests since the last call; none at the first call."""
        self._read_new()
        new, self._unreported = self._unreported, []
        return new

    def _read_new(self) -> list[BatchManifest]:
        """Read the manifests since the last read, and keep them for `new_batches`."""
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
        self._unreported += found
        return found

    def is_clear(self, tables: Sequence[TableFiles]) -> bool:
        """Whether the other stream has decided no event of these tables since `refresh`, or the last call."""
        if not self._is_opened():
            return True
        # First, so that a manifest of a later record is not missed without the number being taken.
        self._records.follow()
        return not self._has_any_of(tables)

    def record(self, manifest: BatchManifest) -> bool:
        """Decide a batch; gives False if the other stream has decided one since `is_clear`."""
        return not self._opened or self._records.add(manifest)

    def decided(self) -> Sequence[TableFiles]:
        """The tables of the other stream's newest batch, which may not be committed yet."""
        return () if self.last is None else self.last.tables

    def _has_any_of(self, tables: Sequence[TableFiles]) -> bool:
        theirs = [entry for manifest in self._read_new() for entry in manifest.tables]
        return bool(theirs) and have_common_events(self.store, theirs, tables)

    def _is_opened(self) -> bool:
        # A new stream takes seconds to decide its first batch, so this check sees it in time.
        self._opened = self._opened or self.store.get(generation_path(self.stream, 0)) is not None
        return self._opened


@dataclass(frozen=True, slots=True)
class _IdentityFile:
    """A file of identities, the seed of these, and when it was written (seconds since 1970)."""

    seed: str
    file: KnownFile
    written_at: int


@dataclass
class ConcurrentFilesStream:
    """The stream of files, as the stream of Kafka records uses it, with the identities of its events."""

    other: ConcurrentStream
    clock: Callable[[], float] = time.time
    _events: dict[str, _IdentityFile] = field(default_factory=dict)
    _recalled: bool = False

    @property
    def taken(self) -> tuple[OtherSourceEvents, ...]:
        """The identity files, grouped by the seed of their identities."""
        by_seed: dict[str, list[KnownFile]] = {}
        may_expire = self._may_expire_before()
        for each in self._events.values():
            file = replace(each.file, may_expire=True) if each.written_at < may_expire else each.file
            by_seed.setdefault(each.seed, []).append(file)
        return tuple(OtherSourceEvents(seed, tuple(files)) for seed, files in by_seed.items())

    def refresh(self) -> None:
        """Read its new manifests and the identity files that they have."""
        if self._recalled:
            self._remember(self.other.new_batches())
        else:
            self.other.refresh()
            self._recall()
        self._forget_expired()

    def _forget_expired(self) -> None:
        """Drop the oldest files that the other stream has deleted, as its window has passed; one request as a rule."""
        at_once = 1
        while files := list(islice(self._events.values(), at_once)):
            oldest = [each.file.path for each in files if self.clock() - each.written_at > _SHORTEST_WINDOW]
            gone = set(self.other.store.missing(oldest))
            expired = list(takewhile(gone.__contains__, oldest))
            for path in expired:
                del self._events[path]
            if len(expired) < at_once:
                return
            at_once = _EXPIRED_AT_ONCE

    def _may_expire_before(self) -> float:
        """Files that were written before may be deleted during a batch (seconds since 1970).

        The window is the other stream's setting. It is at least as long as from the oldest existing file to the newest
        of an earlier batch than the last: what leaves the window by the last batch may not be deleted yet.
        """
        if not self._events:
            return 0
        # In the order of batches.
        last = batch_of(next(reversed(self._events)))
        oldest = min(each.written_at for each in self._events.values())
        earlier = (each.written_at for path, each in reversed(self._events.items()) if batch_of(path) < last)
        window = max(next(earlier, oldest) - oldest, _SHORTEST_WINDOW)
        return self.clock() + _LONGEST_BATCH - window

    def is_clear(self, tables: Sequence[TableFiles]) -> bool:
        """Whether the other stream has decided no event of these tables since `refresh`, or the last call."""
        return self.other.is_clear(tables)

    def record(self, manifest: BatchManifest) -> bool:
        """Decide a batch; gives False if the other stream has decided one since `is_clear`."""
        return self.other.record(manifest)

    def decided(self) -> Sequence[TableFiles]:
        """The tables of the other stream's newest batch, which may not be committed yet."""
        return self.other.decided()

    def _recall(self) -> None:
        store, stream = self.other.store, self.other.stream
        batches = {batch_of(path) for path in store.paths(events_folder(stream))}
        self._remember(Manifests(store, stream).read_many(sorted(batches)))
        self._recalled = True

    def _remember(self, manifests: Iterable[BatchManifest]) -> None:
        for manifest in manifests:
            for file in manifest.events:
                for each in file.sections:
                    if each.partition == EVENTS_OF_FILES:
                        known = KnownFile(file.path, each.start, each.events, ANY_TIME)
                        self._events[file.path] = _IdentityFile(manifest.query_id, known, each.newest)


def have_common_events(store: Store, some: Sequence[TableFiles], others: Sequence[TableFiles]) -> bool:
    """Whether both lists of files of silver/events have an event with the same game and id."""
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
        raise StoreError(f"{path} is missing, though a batch has just written it")
    return pq.read_table(pa.BufferReader(content), columns=_IDENTITY)
