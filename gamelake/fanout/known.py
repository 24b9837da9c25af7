"""What a worker process knows of the events that silver has: read from files, and kept from task to task.

Only files that the plan names count, which manifests have named before: what a failed attempt wrote is in no plan, so
it makes no event a duplicate.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from gamelake.errors import StoreError
from gamelake.fanout.plan import DedupPlan, KnownFile
from gamelake.lake.store import Store
from gamelake.silver.known_events import Events, KnownEvents

_READERS = 8
EVENT_BYTES = 16


@dataclass(slots=True)
class _Partition:
    """One Kafka partition's events, and the files that they came from."""

    events: KnownEvents
    read: set[str] = field(default_factory=set)


@dataclass(slots=True)
class WorkerMemory:
    """The events of one stream that this process has read, by Kafka partition."""

    window_seconds: int
    _partitions: dict[int, _Partition] = field(default_factory=dict)

    def events(self, partition: int, files: Sequence[KnownFile], store: Store) -> KnownEvents:
        """All events of a partition that the files name; only files that are new here are read.

        Raises:
            StoreError: a file is gone or cut off.
        """
        known = self._partitions.setdefault(partition, _Partition(KnownEvents(self.window_seconds)))
        new = [file for file in files if file.path not in known.read]
        oldest = max((file.newest for file in files), default=0) - self.window_seconds
        # A worker that keeps up finds one or two new files; one that has just started finds the whole window.
        with ThreadPoolExecutor(min(max(len(new), 1), _READERS)) as pool:
            for events in pool.map(lambda file: _read(store, file), new):
                known.events.add(events, oldest)
        known.read = {file.path for file in files}
        return known.events


def _read(store: Store, file: KnownFile) -> Events:
    size = file.events * EVENT_BYTES
    content = store.get_range(file.path, file.start, size)
    if content is None or len(content) != size:
        raise StoreError(
            f"{file.path} is gone or cut off: remove what is left of it and start the job again, which then goes on "
            "without the events that it named"
        )
    return Events.unpack(content)


# One memory for all tasks that a worker process runs; of one stream, since a job has no other.
_memories: dict[tuple[object, ...], WorkerMemory] = {}


def worker_memory(plan: DedupPlan, store: Store) -> WorkerMemory:
    """What this process knows of a stream's events."""
    key = (store.location.uri, plan.folder, plan.seed, plan.window_seconds)
    if key not in _memories:
        _memories.clear()
        _memories[key] = WorkerMemory(plan.window_seconds)
    return _memories[key]
