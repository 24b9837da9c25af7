"""Cross-source deduplication: two streams write the same tables, and each event becomes one row.

Before a stream decides a batch, it reads the other stream's decisions. Then it puts its own decision into a settle
record with the next free number. If the other stream has taken that number, both decisions are compared. If they have
no event in common, the stream tries the next number with the same files. Otherwise it decides its batch again. So an
event that arrives from both sources is ingested once, in either order.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from itertools import takewhile
from typing import Protocol

from obstore.exceptions import BaseError

from gamelake.delta.table_files import TableFiles
from gamelake.layers.known_events import ANY_TIME
from gamelake.ledger.generations import Generations
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.ledger.replay_manifests import ReplayManifest, ReplayManifests
from gamelake.ledger.replay_notices import ReplayNotice, ReplayNotices
from gamelake.ledger.settle_records import SettleRecords
from gamelake.model.logs import event_logger
from gamelake.model.naming import events_folder
from gamelake.objects.store import Store
from gamelake.streaming.dedup.common_events import have_common_events
from gamelake.streaming.dedup.identity_files import EVENTS_OF_FILES
from gamelake.streaming.dedup.window import LONGEST_BATCH_SECONDS, batch_of
from gamelake.streaming.plan import KnownFile, OtherSourceEvents

# The shortest window that the stream of files can have, in seconds.
_SHORTEST_WINDOW = 86_400
_EXPIRED_AT_ONCE = 64

log = event_logger(__name__)


class DecisionOrder(Protocol):
    """The order in which streams that write the same tables decide their batches.

    For each attempt to decide a batch, `FanOut` calls `refresh` before the tasks read the identities of other streams.
    After the tasks it calls `is_clear`, `decided` and `record`, in this order, until one of them ends the attempt.
    `refresh` may run on another thread, but never during another call. An error ends the query. If `record` raises, the
    batch may be decided: the next start finds the record.
    """

    def refresh(self) -> None:
        """Read the decisions of the other streams; `is_clear` then compares only with later ones."""

    def is_clear(self, tables: Sequence[TableFiles]) -> bool:
        """Return True if no other stream has decided an event of these tables since `refresh` or the last call."""

    def record(self, manifest: BatchManifest) -> bool:
        """Decide a batch; return False if another stream has decided one since `is_clear`."""

    def decided(self) -> Sequence[TableFiles]:
        """Return the tables of the other stream's newest batch, which may not be committed yet."""


class NoOpDecisionOrder:
    """The order of a stream that alone writes its tables."""

    def refresh(self) -> None:
        """Do nothing."""

    def is_clear(self, tables: Sequence[TableFiles]) -> bool:
        """Return True."""
        del tables
        return True

    def record(self, manifest: BatchManifest) -> bool:
        """Return True: the manifest decides."""
        del manifest
        return True

    def decided(self) -> Sequence[TableFiles]:
        """Return no tables."""
        return ()


@dataclass
class ReplayedEvents:
    """The events that replays have added to silver, until their notices expire.

    Attributes:
        store: the lakehouse.
        clock: returns the time in seconds since 1970.
    """

    store: Store
    clock: Callable[[], float] = time.time
    _notices: dict[int, ReplayNotice] = field(default_factory=dict)
    _finished: set[int] = field(default_factory=set)

    def refresh(self) -> None:
        """Read the new notices, and delete expired ones that no task can need; this is usually one listing."""
        notices = ReplayNotices(self.store)
        there = notices.numbers()
        known = {number: self._notices.get(number) or notices.read(number) for number in there}
        self._notices = {number: notice for number, notice in known.items() if notice is not None}
        for notice in self._notices.values():
            if notice.until + LONGEST_BATCH_SECONDS < self.clock():
                _delete(notices, notice.number)

    def unfinished(self) -> list[ReplayManifest]:
        """Return the replays that some tables may lack; call this before reading the tables."""
        numbers = self._notices.keys() - self._finished
        found = ReplayManifests(self.store).unfinished_among(numbers) if numbers else []
        self._finished |= numbers - {each.number for each in found}
        return found

    @property
    def taken(self) -> tuple[OtherSourceEvents, ...]:
        """The identity files, grouped by the seed of their identities."""
        by_seed: dict[str, list[KnownFile]] = {}
        for notice in self._notices.values():
            if notice.until >= self.clock():
                sections = ((file.path, each) for file in notice.files for each in file.sections)
                by_seed.setdefault(notice.seed, []).extend(
                    KnownFile(path, each.start, each.events, ANY_TIME) for path, each in sections
                )
        return tuple(OtherSourceEvents(seed, tuple(files)) for seed, files in by_seed.items() if files)


def _delete(notices: ReplayNotices, number: int) -> None:
    try:
        notices.delete(number)
    except (BaseError, OSError) as error:
        log.warning("dedup_files_not_deleted", error=error, action="the next batch tries again")


@dataclass
class ConcurrentStream:
    """Another stream that writes the same tables, and the replays; the stream may not exist yet.

    Attributes:
        store: the lakehouse.
        stream: the name of the other stream.
        last: the other stream's last manifest at the last refresh; None if it has none.
        replays: their state at the last refresh.
    """

    store: Store
    stream: str
    last: BatchManifest | None = None
    replays: ReplayedEvents = field(init=False)
    _next: int | None = None
    _unreported: list[BatchManifest] = field(default_factory=list)
    _opened: bool = False
    _records: SettleRecords = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the readers; read nothing yet."""
        self._records = SettleRecords(self.store)
        self.replays = ReplayedEvents(self.store)

    def refresh(self) -> None:
        """Read the other stream's new manifests, and the replays."""
        self.new_batches()

    def new_batches(self) -> list[BatchManifest]:
        """Read the manifests since the last call and, in parallel, the replays; the first call returns none."""
        with ThreadPoolExecutor(1) as pool:
            replays = pool.submit(self.replays.refresh)
            self._read_new()
            replays.result()
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
        """Return True if the other stream has decided no event of these tables since `refresh` or the last call."""
        if not self._is_opened():
            return True
        # Before the manifests are read: if a later record's manifest is missed, its number is taken and `record` fails.
        self._records.follow()
        return not self._has_any_of(tables)

    def record(self, manifest: BatchManifest) -> bool:
        """Decide a batch; return False if the other stream has decided one since `is_clear`."""
        return not self._opened or self._records.add(manifest)

    def decided(self) -> Sequence[TableFiles]:
        """Return the tables of the other stream's newest batch, which may not be committed yet."""
        return () if self.last is None else self.last.tables

    def _has_any_of(self, tables: Sequence[TableFiles]) -> bool:
        theirs = [entry for manifest in self._read_new() for entry in manifest.tables]
        return bool(theirs) and have_common_events(self.store, theirs, tables)

    def _is_opened(self) -> bool:
        # A new stream takes seconds to decide its first batch, so this check sees it in time.
        self._opened = self._opened or Generations(self.store, self.stream).is_begun()
        return self._opened


@dataclass(frozen=True, slots=True)
class _IdentityFile:
    """A file of identities.

    Attributes:
        seed: of the identities.
        file: the part of the file that has them.
        written_at: in seconds since 1970.
    """

    seed: str
    file: KnownFile
    written_at: int


@dataclass
class ConcurrentFilesStream:
    """The stream of files, as the stream of Kafka records sees it, with the identities of its events.

    Attributes:
        other: the stream of files.
        clock: returns the time in seconds since 1970.
    """

    other: ConcurrentStream
    clock: Callable[[], float] = time.time
    _events: dict[str, _IdentityFile] = field(default_factory=dict)
    _recalled: bool = False

    @property
    def taken(self) -> tuple[OtherSourceEvents, ...]:
        """The identity files of the events of files and of replays, grouped by the seed of their identities."""
        by_seed: dict[str, list[KnownFile]] = {}
        may_expire = self._may_expire_before()
        for each in self._events.values():
            file = replace(each.file, may_expire=True) if each.written_at < may_expire else each.file
            by_seed.setdefault(each.seed, []).append(file)
        of_files = (OtherSourceEvents(seed, tuple(files)) for seed, files in by_seed.items())
        return (*of_files, *self.other.replays.taken)

    def refresh(self) -> None:
        """Read the new manifests of the stream of files, with the identity files that they name, and the replays."""
        if self._recalled:
            self._remember(self.other.new_batches())
        else:
            self.other.refresh()
            self._recall()
        self._forget_expired()

    def _forget_expired(self) -> None:
        """Drop the oldest files if the other stream has deleted them after its window; this is usually one request."""
        at_once = 1
        while files := nsmallest(at_once, self._events.values(), key=lambda each: each.written_at):
            oldest = [each.file.path for each in files if self.clock() - each.written_at > _SHORTEST_WINDOW]
            gone = set(self.other.store.missing(oldest))
            expired = list(takewhile(gone.__contains__, oldest))
            for path in expired:
                del self._events[path]
            if len(expired) < at_once:
                return
            at_once = _EXPIRED_AT_ONCE

    def _may_expire_before(self) -> float:
        """Return the time (seconds since 1970) such that the other stream may delete older files during a batch.

        The window is a setting of the other stream. It is at least the time from the oldest existing file to the newest
        file before the last batch: files that leave the window with the last batch may not be deleted yet.
        """
        if not self._events:
            return 0
        # In the order of batches.
        last = batch_of(next(reversed(self._events)))
        oldest = min(each.written_at for each in self._events.values())
        earlier = (each.written_at for path, each in self._events.items() if batch_of(path) < last)
        window = max(max(earlier, default=oldest) - oldest, _SHORTEST_WINDOW)
        return self.clock() + LONGEST_BATCH_SECONDS - window

    def is_clear(self, tables: Sequence[TableFiles]) -> bool:
        """Return True if the other stream has decided no event of these tables since `refresh` or the last call."""
        return self.other.is_clear(tables)

    def record(self, manifest: BatchManifest) -> bool:
        """Decide a batch; return False if the other stream has decided one since `is_clear`."""
        return self.other.record(manifest)

    def decided(self) -> Sequence[TableFiles]:
        """Return the tables of the other stream's newest batch, which may not be committed yet."""
        return self.other.decided()

    def _recall(self) -> None:
        store, stream = self.other.store, self.other.stream
        paths = set(store.paths(events_folder(stream)))
        self._remember(Manifests(store, stream).read_many(sorted({batch_of(path) for path in paths})))
        # Some of the files that a batch has written may have been merged since.
        self._events = {path: each for path, each in self._events.items() if path in paths}
        self._recalled = True

    def _remember(self, manifests: Iterable[BatchManifest]) -> None:
        for manifest in manifests:
            for file in manifest.events:
                for path in file.replaces:
                    self._events.pop(path, None)
                for each in file.sections:
                    if each.partition == EVENTS_OF_FILES:
                        known = KnownFile(file.path, each.start, each.events, ANY_TIME)
                        self._events[file.path] = _IdentityFile(manifest.query_id, known, each.newest)
