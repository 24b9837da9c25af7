"""Finds the duplicates among the events of a task, and writes the identities of the others for later batches."""

import uuid
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.layers.identity import Identities
from gamelake.layers.known_events import Events, Flags, KnownEvents, repeated
from gamelake.model.errors import StoreError
from gamelake.model.naming import game_of
from gamelake.storage.manifests import EventsFile, EventsSection
from gamelake.storage.store import Store
from gamelake.streaming.plan import EVENTS_IN_MEMORY, DedupPlan, KnownFile

_READERS = 8
_AHEAD = 16
EVENT_BYTES = 16

Ints = npt.NDArray[np.int64]
EVENT_ID = "event_id"
_MICROSECONDS = 1_000_000


@dataclass(slots=True)
class _WorkerPartition:
    """The known events of one Kafka partition, and the paths of the files that were read."""

    events: KnownEvents
    read: set[str] = field(default_factory=set)


@dataclass(slots=True)
class WorkerMemory:
    """The event identities of one stream that this process has read, by Kafka partition.

    Attributes:
        most_in_memory: so many are kept in memory, those of all partitions together; the others in scratch files.
    """

    window_seconds: int
    most_in_memory: int = EVENTS_IN_MEMORY
    _partitions: dict[int, _WorkerPartition] = field(default_factory=dict)

    def events(self, partition: int, files: Sequence[KnownFile], store: Store) -> KnownEvents:
        """The events in the identity files of a partition; only files that this process has not read yet are read.

        Raises:
            StoreError: a file is truncated, or is missing and can't have expired; or TMPDIR has no room.
        """
        known = self._partitions.setdefault(partition, _WorkerPartition(KnownEvents(self.window_seconds)))
        new = [file for file in files if file.path not in known.read]
        oldest = max((file.newest for file in files), default=0) - self.window_seconds
        # A running worker reads one or two new files; one that has just started reads the whole window.
        with ThreadPoolExecutor(min(max(len(new), 1), _READERS)) as pool:
            # In portions: what is read ahead is in memory, too.
            for start in range(0, len(new), _AHEAD):
                for events in pool.map(lambda file: _read(store, file), new[start : start + _AHEAD]):
                    if events is not None:
                        known.events.add(events, oldest)
                        self._spill()
        known.read = {file.path for file in files}
        return known.events

    @property
    def in_memory(self) -> int:
        """How many identities are in memory."""
        return sum(partition.events.in_memory for partition in self._partitions.values())

    def _spill(self) -> None:
        while self.in_memory > self.most_in_memory:
            max((each.events for each in self._partitions.values()), key=lambda events: events.in_memory).spill()


def _read(store: Store, file: KnownFile) -> Events | None:
    size = file.events * EVENT_BYTES
    content = store.get_range(file.path, file.start, size)
    if content is None and file.may_expire:
        return None
    if content is None or len(content) != size:
        raise StoreError(
            f"{file.path} is gone or cut off: delete it and restart the job, which then continues without the "
            "identities that it had"
        )
    return Events.decode(content)


# One memory for all tasks of a worker process, of one stream, since a job runs one stream.
_memories: dict[tuple[object, ...], WorkerMemory] = {}


def worker_memory(plan: DedupPlan, store: Store) -> WorkerMemory:
    """The identities that this process keeps of a stream; those of another stream or window are dropped."""
    key = (store.location.uri, plan.folder, plan.seed, plan.window_seconds, plan.in_memory)
    if key not in _memories:
        _memories.clear()
        _memories[key] = WorkerMemory(plan.window_seconds, plan.in_memory)
    return _memories[key]


@dataclass(frozen=True, slots=True)
class CandidateEvents:
    """Events of one message type that may be duplicates; the arrays (int64) have one element per event, in order.

    Attributes:
        events: with the column `event_id` (string), unless the message type has none.
        codes: the index in `tables` of the event's table; negative if the event goes to no table.
        partitions: the Kafka partition.
        kafka_microseconds: the Kafka timestamp in microseconds since 1970.
    """

    events: pa.RecordBatch
    tables: list[str]
    codes: Ints
    partitions: Ints
    kafka_microseconds: Ints


class DuplicateFilter(Protocol):
    """Finds the duplicates among the events of one task."""

    def duplicates(self, seen: CandidateEvents) -> Flags:
        """Which events are duplicates (bool, one per event); the others count as ingested from now on."""

    def write(self) -> tuple[EventsFile | None, dict[str, int]]:
        """Write the identities since the last call as one file; gives it, and the number of duplicates by game."""


class NoOpDuplicateFilter:
    """Finds no duplicates: deduplication is off."""

    def duplicates(self, seen: CandidateEvents) -> Flags:
        """All false (bool, one per event)."""
        return np.zeros(len(seen.codes), np.bool_)

    def write(self) -> tuple[EventsFile | None, dict[str, int]]:
        """No file and no counts."""
        return None, {}


@dataclass(slots=True)
class _Partition:
    """The identities of one Kafka partition: in silver, accepted by this task, and accepted but not written yet."""

    known: KnownEvents
    taken: KnownEvents
    unwritten: list[Events] = field(default_factory=list)


class WindowDuplicateFilter:
    """Finds duplicates of events that the stream has ingested within the deduplication window."""

    def __init__(self, plan: DedupPlan, store: Store) -> None:
        self._plan = plan
        self._store = store
        self._memory = worker_memory(plan, store)
        self._identities = Identities(plan.seed)
        self._partitions: dict[int, _Partition] = {}
        self._counts: Counter[str] = Counter()

    def duplicates(self, seen: CandidateEvents) -> Flags:
        """Which events are duplicates (bool, one per event); the others count as ingested from now on."""
        result = np.zeros(len(seen.codes), np.bool_)
        rows = rows_with_id(seen)
        if not len(rows):
            return result
        events = self._events(seen, rows)
        partitions = seen.partitions[rows]
        for number in np.unique(partitions):
            here = np.flatnonzero(partitions == number)
            result[rows[here]] = self._take(int(number), events.take(here))
        self._counts += count_by_game(seen, result)
        return result

    def _events(self, seen: CandidateEvents, rows: Ints) -> Events:
        ids = seen.events.column(EVENT_ID)
        ids = ids if len(rows) == len(ids) else ids.take(pa.array(rows))
        high, rest = self._identities.of(seen.tables, seen.codes[rows], ids)
        # A producer's clock that is ahead must not move the window into the future.
        microseconds = np.minimum(seen.kafka_microseconds[rows], self._plan.clock)
        return Events.of(high, rest, np.maximum(microseconds, 0) // _MICROSECONDS)

    def _take(self, number: int, events: Events) -> Flags:
        partition = self._partition(number)
        known = partition.known.have(events) | partition.taken.have(events)
        new = np.flatnonzero(~known)
        again = repeated(events.take(new), self._plan.window_seconds)
        accepted = events.take(new[~again])
        if len(accepted):
            partition.taken.add(accepted)
            partition.unwritten.append(accepted)
        known[new[again]] = True
        return known

    def _partition(self, number: int) -> _Partition:
        if number not in self._partitions:
            files = self._plan.known.get(number, ())
            known = self._memory.events(number, files, self._store)
            self._partitions[number] = _Partition(known, KnownEvents(self._plan.window_seconds))
        return self._partitions[number]

    def write(self) -> tuple[EventsFile | None, dict[str, int]]:
        """Write the identities since the last call as one file; gives it, and the number of duplicates by game."""
        counts, self._counts = dict(self._counts), Counter()
        content, sections = bytearray(), []
        for number, partition in sorted(self._partitions.items()):
            if partition.unwritten:
                events = Events.joined(partition.unwritten)
                newest = int(events.seconds.max())
                sections.append(EventsSection(partition=number, start=len(content), events=len(events), newest=newest))
                content += events.encode()
                partition.unwritten = []
        if not sections:
            return None, counts
        path = f"{self._plan.folder}/{self._plan.batch_id:012d}-{uuid.uuid4()}"
        self._store.put(path, bytes(content))
        return EventsFile(path=path, sections=tuple(sections)), counts


def count_by_game(seen: CandidateEvents, chosen: Flags) -> Counter[str]:
    """The number of chosen events by game; `chosen` (bool) has one element per event and no event without a table."""
    codes, counts = np.unique(seen.codes[chosen], return_counts=True)
    return Counter({game_of(seen.tables[code]) or "": int(count) for code, count in zip(codes, counts, strict=True)})


def rows_with_id(seen: CandidateEvents) -> Ints:
    """The positions (int64, ascending) of events that go to a table and have an id: others can't be compared."""
    if seen.events.schema.get_field_index(EVENT_ID) < 0:
        return np.zeros(0, np.int64)
    length = pc.fill_null(pc.binary_length(seen.events.column(EVENT_ID)), 0).to_numpy()
    return np.flatnonzero((seen.codes >= 0) & (length > 0))
