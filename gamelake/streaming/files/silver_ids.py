"""Finds events of files that silver has already: only data files with overlapping event times are read.

Data files never change, so a worker process keeps their identities from task to task
(`gamelake.streaming.dedup.worker_memory`). So silver may be larger than the memory.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from gamelake.delta.file_bounds import bounds_of
from gamelake.delta.log.codec import FileEntry, file_entries, object_path
from gamelake.delta.tables import open_table
from gamelake.layers.identity import Identities
from gamelake.layers.known_events import ANY_TIME, Events, KnownEvents
from gamelake.layers.routing import NOWHERE, Router
from gamelake.ledger.manifests import EventsFile
from gamelake.model.arrays import Flags
from gamelake.model.errors import StoreError
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Store
from gamelake.scans.datasets import file_system
from gamelake.streaming.dedup.candidates import EVENT_ID, EVENT_TIME, CandidateEvents, IdentifiedEvents
from gamelake.streaming.dedup.identity_files import EVENTS_OF_FILES, write_identities
from gamelake.streaming.dedup.worker_memory import WorkerMemory
from gamelake.streaming.files.plan import FileDedupPlan

_GAME = "game_name"
_FOR_EVER = 2**63 - 1
_ROWS_AT_ONCE = 65_536
_RUN = 1_000_000

# The partition numbers of objects, by content and by key, in identity files.
OBJECTS, KEYS = 0, 1


@dataclass
class SilverIds:
    """The event ids of silver/events at a version, and of some uncommitted files; for one thread.

    Attributes:
        store: the lakehouse.
        version: of the table; None if the table does not exist.
        uncommitted: files that are searched whatever their event times.
        router: chooses the table of an event, which is part of its identity.
        identities: computes identities.
        memory: of the process.
    """

    store: Store
    version: int | None
    uncommitted: tuple[FileEntry, ...]
    router: Router
    identities: Identities
    memory: WorkerMemory

    def have(self, events: Events, first: int, last: int) -> Flags:
        """Find the events that silver has (bool, one per event, in order).

        Args:
            events: in any order.
            first: the least event time of the events, in microseconds since 1970.
            last: the greatest event time of the events, in microseconds since 1970.

        Raises:
            StoreError: vacuum has deleted a data file of the version.
        """
        found = np.zeros(len(events), np.bool_)
        for file in self._overlapping(first, last):
            for known in self.memory.data_file(self.identities.seed, file.path, self._runs(file)):
                found |= known.have(events)
        return found

    @cached_property
    def _folder(self) -> fs.FileSystem:
        files = (*(file for file, _, _ in self._files), *self.uncommitted)
        return file_system(self.store.location, {self._path(file): file.size for file in files})

    def _path(self, file: FileEntry) -> str:
        return object_path(self.store.location, SILVER_EVENTS, file.relative_path)

    @cached_property
    def _files(self) -> list[tuple[FileEntry, int, int]]:
        """The files of the version, each with its least and greatest event time in microseconds since 1970."""
        if self.version is None:
            return []
        handle = open_table(self.store.location, SILVER_EVENTS, self.version)
        actions = pa.table(handle.get_add_actions(flatten=False))
        least, most = (bounds.cast(pa.int64()) for bounds in bounds_of(actions, EVENT_TIME))
        # With rows that were deleted since: a deleted event still counts as ingested.
        files = file_entries(actions)
        self.memory.keep_data_files({file.path for file in (*files, *self.uncommitted)})
        return [*zip(files, _filled(least, -_FOR_EVER), _filled(most, _FOR_EVER), strict=True)]

    def _overlapping(self, first: int, last: int) -> list[FileEntry]:
        found = [file for file, least, most in self._files if least <= last and most >= first]
        return [*found, *self.uncommitted]

    def _runs(self, file: FileEntry) -> Iterator[Events]:
        """Yield the identities of a data file in parts that can be sorted in memory."""
        parts: list[Events] = []
        for rows in self.rows(file):
            parts.append(self._identified(rows))
            if sum(map(len, parts)) >= _RUN:
                yield Events.joined(parts)
                parts = []
        if parts:
            yield Events.joined(parts)

    def rows(self, file: FileEntry) -> Iterator[pa.RecordBatch]:
        """Yield the columns game_name and event_id (string) of a data file, in batches in the order of its rows.

        Raises:
            StoreError: the file is missing.
        """
        try:
            with self._folder.open_input_file(self._path(file)) as content:
                rows = pq.ParquetFile(content, pre_buffer=True)
                yield from rows.iter_batches(_ROWS_AT_ONCE, columns=[_GAME, EVENT_ID])
        except FileNotFoundError:
            gone = f"{SILVER_EVENTS}/{file.relative_path} is missing: vacuum deleted a file that a batch needs"
            raise StoreError(gone) from None

    def _identified(self, rows: pa.RecordBatch) -> Events:
        codes = self.router.route(rows.column(_GAME))
        known = np.flatnonzero((codes != NOWHERE) & rows.column(EVENT_ID).is_valid().to_numpy(zero_copy_only=False))
        high, rest = self.identities.of(self.router.tables, codes[known], rows.column(EVENT_ID).take(pa.array(known)))
        return Events.of(high, rest, np.full(len(known), ANY_TIME, np.int64))


def _filled(bounds: pa.ChunkedArray, value: int) -> list[int]:
    filled: list[int] = pc.fill_null(bounds, pa.scalar(value, pa.int64())).to_pylist()
    return filled


class SilverEvents:
    """The events of files that count as ingested: those of silver, and those that another task of the batch ingests.

    See `IngestedEvents` for the methods. Events without an id are never compared.

    Args:
        plan: of the search.
        store: the lakehouse.
        router: chooses the table of an event.
        claimed: the identities of events that another task ingests, 16 bytes each.
        memory: of the process.
    """

    window_seconds = ANY_TIME

    def __init__(self, plan: FileDedupPlan, store: Store, router: Router, claimed: bytes, memory: WorkerMemory) -> None:
        self._plan = plan
        self._store = store
        self._identities = Identities(plan.seed)
        self._silver = SilverIds(store, plan.silver, plan.uncommitted, router, self._identities, memory)
        self._claimed = KnownEvents(ANY_TIME)
        if claimed:
            self._claimed.add(Events.decode(claimed))

    def identify(self, candidates: CandidateEvents) -> Iterator[IdentifiedEvents]:
        """Identify candidates, and compare them with the files of silver that overlap their event times."""
        rows = np.arange(len(candidates.codes))
        events = candidates.identified(self._identities, np.full(len(rows), ANY_TIME, np.int64))
        span = pc.min_max(candidates.events.column(EVENT_TIME).cast(pa.int64())).as_py()
        are_known = self._claimed.have(events) | self._silver.have(events, span["min"], span["max"])
        yield IdentifiedEvents(EVENTS_OF_FILES, rows, events, are_known)

    def write(self, accepted: Mapping[int, Events]) -> EventsFile:
        """Write the identities of accepted events as one file; they are as new as the file."""
        sections = {partition: (events, int(time.time())) for partition, events in accepted.items()}
        return write_identities(self._store, self._plan.folder, self._plan.batch_id, sections)
