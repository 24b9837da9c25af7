"""Which events silver has, of the times that files speak of: only data files whose times overlap are read.

A worker process keeps what it has read from task to task: a data file never changes, and as long as all that were read
are still live, what they hold is in silver.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gamelake.errors import StoreError
from gamelake.lake.file_entries import FileEntry, live_files, object_path
from gamelake.lake.store import Store
from gamelake.lake.tables import open_table
from gamelake.naming import SILVER_EVENTS
from gamelake.silver.identity import Identities
from gamelake.silver.known_events import ANY_TIME, Events, Flags, KnownEvents
from gamelake.silver.routing import NOWHERE, Router

_GAME, _ID, _TIME = "game_name", "event_id", "event_time"
_FOR_EVER = 2**63 - 1
_READERS = 8


@dataclass(slots=True)
class _Memory:
    """The events of data files, and the paths of these files."""

    known: KnownEvents = field(default_factory=lambda: KnownEvents(ANY_TIME))
    read: set[str] = field(default_factory=set)


# One for all tasks that a worker process runs, of one lakehouse and seed.
_memories: dict[tuple[str, str], _Memory] = {}


def forget() -> None:
    """Begin as a worker process that has just started does."""
    _memories.clear()


@dataclass
class SilverIds:
    """The ids of a version of silver/events, None if there is no such table, and of some files besides.

    `remembered` is how many events may be kept from task to task; a task that needs more reads more.
    """

    store: Store
    version: int | None
    uncommitted: tuple[FileEntry, ...]
    router: Router
    identities: Identities
    remembered: int

    def have(self, events: Events, first: int, last: int) -> Flags:
        """Which events silver has; all of them happened from `first` to `last` (microseconds)."""
        memory = self._memory
        self._read([file for file in self._overlapping(first, last) if file.path not in memory.read])
        return memory.known.have(events)

    @cached_property
    def _memory(self) -> _Memory:
        """What earlier tasks have read, unless one of the files is gone, and what it held maybe with it."""
        key = (self.store.location.uri, self.identities.seed)
        memory = _memories.get(key)
        live = {file.path for file, _, _ in self._files} | {file.path for file in self.uncommitted}
        if memory is None or len(memory.known) > self.remembered or not memory.read <= live:
            forget()
            memory = _memories[key] = _Memory()
        return memory

    def _read(self, files: Sequence[FileEntry]) -> None:
        with ThreadPoolExecutor(min(max(len(files), 1), _READERS)) as pool:
            for file, events in zip(files, pool.map(self._events, files), strict=True):
                self._memory.known.add(events)
                self._memory.read.add(file.path)

    @cached_property
    def _files(self) -> list[tuple[FileEntry, int, int]]:
        """The files of the version, each with the times that it spans."""
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
        return [(file, *by_path[file.path]) for file in live_files(handle)]

    def _overlapping(self, first: int, last: int) -> list[FileEntry]:
        found = [file for file, least, most in self._files if least <= last and most >= first]
        return [*found, *self.uncommitted]

    def _events(self, file: FileEntry) -> Events:
        content = self.store.get(object_path(self.store.location, SILVER_EVENTS, file.place))
        if content is None:
            raise StoreError(f"{SILVER_EVENTS}/{file.place} is gone: vacuum kept less than what a batch looks into")
        rows = pq.read_table(pa.BufferReader(content), columns=[_GAME, _ID]).combine_chunks()
        parts = [self._identified(batch) for batch in rows.to_batches()]
        return Events.joined(parts) if parts else Events.unpack(b"")

    def _identified(self, rows: pa.RecordBatch) -> Events:
        codes = self.router.route(rows.column(_GAME))
        known = np.flatnonzero((codes != NOWHERE) & rows.column(_ID).is_valid().to_numpy(zero_copy_only=False))
        high, rest = self.identities.of(self.router.tables, codes[known], rows.column(_ID).take(pa.array(known)))
        return Events.of(high, rest, np.full(len(known), ANY_TIME, np.int64))
