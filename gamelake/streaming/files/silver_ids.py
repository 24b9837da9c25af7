"""Finds events of files that silver has already: only data files with overlapping event times are read.

Data files never change, so a worker process keeps their identities from task to task: up to a limit in memory, the
rest in local files, 16 bytes per event. So silver may be larger than memory.
"""

import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from gamelake.layers.identity import Identities
from gamelake.layers.known_events import ANY_TIME, Events, Flags, KnownEvents, on_disk, repeated
from gamelake.layers.routing import NOWHERE, Router
from gamelake.model.errors import StoreError
from gamelake.model.naming import SILVER_EVENTS
from gamelake.storage.datasets import file_system
from gamelake.storage.delta_log import FileEntry, live_files, object_path
from gamelake.storage.manifests import EventsFile, EventsSection
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table
from gamelake.streaming.cross_source import EVENTS_OF_FILES
from gamelake.streaming.duplicates import EVENT_ID, CandidateEvents, count_by_game, rows_with_id
from gamelake.streaming.files.plan import FileDedupPlan

_GAME, _ID, _TIME = "game_name", "event_id", "event_time"
_FOR_EVER = 2**63 - 1
_ROWS_AT_ONCE = 65_536
_RUN = 1_000_000

# The partition numbers of objects, by content and by key, in identity files.
OBJECTS, KEYS = 0, 1


@dataclass(slots=True)
class _Memory:
    """The identities of data files by path, and how many of each file are in memory."""

    files: dict[str, KnownEvents] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)

    def keep(self, path: str, runs: Iterable[Events], most: int) -> KnownEvents:
        """Keep the identities of a file, in memory if all files together have at most `most` there."""
        kept, held = [], 0
        for run in runs:
            fits = sum(self.held.values()) + held + len(run) <= most
            held += len(run) if fits else 0
            kept.append(run.sorted() if fits else on_disk(run.sorted()))
        self.files[path], self.held[path] = KnownEvents(ANY_TIME, kept), held
        return self.files[path]

    def keep_only(self, live: Set[str]) -> None:
        """Drop files that silver no longer has."""
        for path in self.files.keys() - live:
            del self.files[path], self.held[path]


# One for all tasks of a worker process, of one lakehouse and seed.
_memories: dict[tuple[str, str], _Memory] = {}


def forget() -> None:
    """Drop what this worker process has cached."""
    _memories.clear()


@dataclass
class SilverIds:
    """The event ids of silver/events at a version, and of some uncommitted files.

    Attributes:
        version: None if the table does not exist.
        remembered: how many identities may be kept in memory from task to task.
    """

    store: Store
    version: int | None
    uncommitted: tuple[FileEntry, ...]
    router: Router
    identities: Identities
    remembered: int

    def have(self, events: Events, first: int, last: int) -> Flags:
        """Which events silver has (bool, one per event); all have times from `first` to `last` (microseconds)."""
        found = np.zeros(len(events), np.bool_)
        for file in self._overlapping(first, last):
            found |= self._known(file).have(events)
        return found

    def _known(self, file: FileEntry) -> KnownEvents:
        known = self._memory.files.get(file.path)
        return self._memory.keep(file.path, self._runs(file), self.remembered) if known is None else known

    @cached_property
    def _memory(self) -> _Memory:
        key = (self.store.location.uri, self.identities.seed)
        if key not in _memories:
            forget()
            _memories[key] = _Memory()
        _memories[key].keep_only({file.path for file, _, _ in self._files} | {file.path for file in self.uncommitted})
        return _memories[key]

    @cached_property
    def _folder(self) -> fs.FileSystem:
        files = (*(file for file, _, _ in self._files), *self.uncommitted)
        return file_system(self.store.location, {self._path(file): file.size for file in files})

    def _path(self, file: FileEntry) -> str:
        return object_path(self.store.location, SILVER_EVENTS, file.relative_path)

    @cached_property
    def _files(self) -> list[tuple[FileEntry, int, int]]:
        """The files of the version, each with its least and greatest event time in microseconds."""
        if self.version is None:
            return []
        handle = open_table(self.store.location, SILVER_EVENTS, self.version)
        actions = pa.table(handle.get_add_actions(flatten=True))
        bounds = [
            actions[name].cast(pa.int64()).to_pylist() if name in actions.column_names else [None] * len(actions)
            for name in (f"min.{_TIME}", f"max.{_TIME}")
        ]
        by_path = {
            path: (-_FOR_EVER if least is None else least, _FOR_EVER if most is None else most)
            for path, least, most in zip(actions["path"].to_pylist(), *bounds, strict=True)
        }
        # An event that was deleted since is a duplicate still.
        return [(file, *by_path[file.path]) for file in live_files(handle, with_deleted_rows=True)]

    def _overlapping(self, first: int, last: int) -> list[FileEntry]:
        found = [file for file, least, most in self._files if least <= last and most >= first]
        return [*found, *self.uncommitted]

    def _runs(self, file: FileEntry) -> Iterator[Events]:
        """The identities of a data file in parts that can be sorted in memory."""
        parts: list[Events] = []
        for rows in self.rows(file):
            parts.append(self._identified(rows))
            if sum(map(len, parts)) >= _RUN:
                yield Events.joined(parts)
                parts = []
        if parts:
            yield Events.joined(parts)

    def rows(self, file: FileEntry) -> Iterator[pa.RecordBatch]:
        """The columns game_name and event_id (string) of a data file, in batches."""
        try:
            with self._folder.open_input_file(self._path(file)) as content:
                yield from pq.ParquetFile(content, pre_buffer=True).iter_batches(_ROWS_AT_ONCE, columns=[_GAME, _ID])
        except FileNotFoundError:
            gone = f"{SILVER_EVENTS}/{file.relative_path} is missing: vacuum deleted a file that a batch needs"
            raise StoreError(gone) from None

    def _identified(self, rows: pa.RecordBatch) -> Events:
        codes = self.router.route(rows.column(_GAME))
        known = np.flatnonzero((codes != NOWHERE) & rows.column(_ID).is_valid().to_numpy(zero_copy_only=False))
        high, rest = self.identities.of(self.router.tables, codes[known], rows.column(_ID).take(pa.array(known)))
        return Events.of(high, rest, np.full(len(known), ANY_TIME, np.int64))


class SilverDuplicateFilter:
    """Finds events of a task that silver, an earlier file or another task has; events without an id are never found."""

    def __init__(self, plan: FileDedupPlan, store: Store, router: Router, claimed: bytes) -> None:
        self._plan = plan
        self._store = store
        self._identities = Identities(plan.seed)
        self._silver = SilverIds(store, plan.silver, plan.uncommitted, router, self._identities, plan.remembered)
        self._taken = KnownEvents(ANY_TIME)
        if claimed:
            self._taken.add(Events.decode(claimed))
        self._unwritten: list[Events] = []
        self._counts: Counter[str] = Counter()

    def duplicates(self, seen: CandidateEvents) -> Flags:
        """Which events are duplicates (bool, one per event); the others count as ingested from now on."""
        result = np.zeros(len(seen.codes), np.bool_)
        rows = rows_with_id(seen)
        if not len(rows):
            return result
        ids = seen.events.column(EVENT_ID).take(pa.array(rows))
        high, rest = self._identities.of(seen.tables, seen.codes[rows], ids)
        events = Events.of(high, rest, np.full(len(rows), ANY_TIME, np.int64))
        result[rows] = self._take(events, seen.events.column("event_time").take(pa.array(rows)))
        self._counts += count_by_game(seen, result)
        return result

    def _take(self, events: Events, times: pa.TimestampArray) -> Flags:
        known = self._taken.have(events)
        span = pc.min_max(times.cast(pa.int64())).as_py()
        known |= self._silver.have(events, span["min"], span["max"])
        new = np.flatnonzero(~known)
        again = repeated(events.take(new), ANY_TIME)
        known[new[again]] = True
        accepted = events.take(new[~again])
        if len(accepted):
            self._taken.add(accepted)
            self._unwritten.append(accepted)
        return known

    def write(self) -> tuple[EventsFile | None, dict[str, int]]:
        """Write the identities since the last call as one file; gives it, and the number of duplicates by game."""
        counts, self._counts = dict(self._counts), Counter()
        if not self._unwritten:
            return None, counts
        events, self._unwritten = Events.joined(self._unwritten), []
        path = f"{self._plan.folder}/{self._plan.batch_id:012d}-{uuid.uuid4()}"
        self._store.put(path, events.encode())
        section = EventsSection(partition=EVENTS_OF_FILES, start=0, events=len(events), newest=int(time.time()))
        return EventsFile(path=path, sections=(section,)), counts
