"""Keeps the identities of ingested events in a worker process, from task to task and within one limit for all sources.

Stored files never change, so each is read once. The limit holds for the window of the process's stream, the other
streams, the replays and silver together. Identities beyond it are in scratch files of 16 bytes per event.
"""

from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain

from gamelake.layers.known_events import ANY_TIME, EVENT_BYTES, Events, KnownEvents
from gamelake.model.errors import StoreError
from gamelake.model.worker_cache import per_worker
from gamelake.objects.store import Store
from gamelake.streaming.plan import EVENTS_IN_MEMORY, KnownFile

_READERS = 8
_AHEAD = 16
# A worker process keeps at most this many times the events of the window, and a few more.
_MOST_KNOWN, _FEW_EVENTS = 2, 10_000


@dataclass(slots=True)
class _Partition:
    """The state of one partition of a seed's identity files.

    Attributes:
        events: the known events.
        read: the paths of the identity files that were read.
    """

    events: KnownEvents
    read: set[str] = field(default_factory=set)


@dataclass(slots=True)
class WorkerMemory:
    """The event identities that one process keeps, by the seed of their hash. One thread uses it at a time.

    Attributes:
        most_in_memory: the largest number of identities in memory, of all sources together; each takes 16 to 20 bytes.
        in_memory: the number of identities in memory.
    """

    most_in_memory: int = EVENTS_IN_MEMORY
    in_memory: int = 0
    _partitions: dict[tuple[str, int, int], _Partition] = field(default_factory=dict)
    _data_files: dict[tuple[str, str], list[KnownEvents]] = field(default_factory=dict)

    def partition(
        self, seed: str, window_seconds: int, number: int, files: Sequence[KnownFile], store: Store
    ) -> KnownEvents:
        """Return the events in the identity files of a partition; read only files that this process has not read.

        Args:
            seed: of the identities.
            window_seconds: events with Kafka timestamps further apart are not duplicates; `ANY_TIME` for no such limit.
            number: of the partition.
            files: all identity files of the window, of this partition.
            store: the lakehouse.

        Raises:
            StoreError: a file is truncated, or is missing and can't have expired; or TMPDIR has no room.
        """
        known = self._partition((seed, window_seconds, number), sum(file.events for file in files))
        new = [file for file in files if file.path not in known.read]
        oldest = max((file.newest for file in files), default=0) - window_seconds
        # A running worker reads one or two new files; one that has just started reads the whole window.
        with ThreadPoolExecutor(min(max(len(new), 1), _READERS)) as pool:
            # In portions, because files that are read ahead are in memory too.
            for start in range(0, len(new), _AHEAD):
                for events in pool.map(lambda file: _read(store, file), new[start : start + _AHEAD]):
                    if events is not None:
                        self._add(known.events, events, oldest)
        known.read = {file.path for file in files}
        return known.events

    def _partition(self, key: tuple[str, int, int], events: int) -> _Partition:
        """Return the state of a partition whose identity files have a number of events.

        Identities without a time can't be dropped by age. If less than half of the known identities are still in the
        files of the window, all are dropped, and the files are read again.
        """
        known = self._partitions.get(key)
        if known is None or len(known.events) > _MOST_KNOWN * events + _FEW_EVENTS:
            known = self._partitions[key] = _Partition(KnownEvents(key[1]))
            self._recount()
        return known

    def _add(self, known: KnownEvents, events: Events, oldest: int) -> None:
        before = known.in_memory
        known.add(events, oldest)
        self.in_memory += known.in_memory - before
        while self.in_memory > self.most_in_memory:
            max(self._sets(), key=lambda events: events.in_memory).spill()
            self._recount()

    def data_file(self, seed: str, path: str, runs: Iterable[Events]) -> Sequence[KnownEvents]:
        """Return the events of a data file, whose times are not compared.

        Args:
            seed: of the identities.
            path: of the file.
            runs: the events of the file, in parts that can be sorted in memory; read only if the process does not have
                the file. A part is in a scratch file if the memory has no room for it.

        Raises:
            StoreError: a part can't be read, or TMPDIR has no room.
        """
        kept = self._data_files.get((seed, path))
        if kept is None:
            kept, in_memory = [], 0
            for run in filter(len, runs):
                known = KnownEvents(ANY_TIME)
                known.add(run)
                if self.in_memory + in_memory + len(run) > self.most_in_memory:
                    known.spill()
                in_memory += known.in_memory
                kept.append(known)
            self._data_files[seed, path] = kept
            self.in_memory += in_memory
        return kept

    def keep_only(self, seeds: Collection[str]) -> None:
        """Drop the identities of all other seeds."""
        self._partitions = {key: known for key, known in self._partitions.items() if key[0] in seeds}
        self._data_files = {key: kept for key, kept in self._data_files.items() if key[0] in seeds}
        self._recount()

    def keep_data_files(self, paths: Collection[str]) -> None:
        """Drop all other data files."""
        self._data_files = {key: kept for key, kept in self._data_files.items() if key[1] in paths}
        self._recount()

    def _recount(self) -> None:
        self.in_memory = sum(events.in_memory for events in self._sets())

    def _sets(self) -> Iterable[KnownEvents]:
        partitions = (partition.events for partition in self._partitions.values())
        return chain(partitions, *self._data_files.values())


def _read(store: Store, file: KnownFile) -> Events | None:
    size = file.events * EVENT_BYTES
    content = store.get_range(file.path, file.start, size)
    if content is None and file.may_expire:
        return None
    if content is None or len(content) != size:
        raise StoreError(
            f"{file.path} is gone or cut off: delete it and restart the job, which then continues without the "
            "identities of this file"
        )
    return Events.decode(content)


def worker_memory(store: Store, most_in_memory: int, seeds: Collection[str]) -> WorkerMemory:
    """Return this process's identities of a lakehouse, without those that a batch does not need.

    Args:
        store: the lakehouse.
        most_in_memory: the largest number of identities in memory.
        seeds: of all identities that the batch names; those of others, such as expired replays, are released.
    """
    key = (store.location.uri, most_in_memory)
    memory = per_worker(WorkerMemory, key, lambda: WorkerMemory(most_in_memory))
    memory.keep_only(seeds)
    return memory
