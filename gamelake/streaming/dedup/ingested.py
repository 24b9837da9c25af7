"""The events that a stream of Kafka records knows as ingested: those of its window, and those of other streams."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gamelake.layers.identity import Identities
from gamelake.layers.known_events import ANY_TIME, Events, KnownEvents
from gamelake.ledger.manifests import EventsFile
from gamelake.model.arrays import Flags
from gamelake.objects.store import Store
from gamelake.streaming.dedup.candidates import CandidateEvents, IdentifiedEvents
from gamelake.streaming.dedup.identity_files import EVENTS_OF_FILES, write_identities
from gamelake.streaming.dedup.worker_memory import WorkerMemory
from gamelake.streaming.plan import DedupPlan, OtherSourceEvents

_MICROSECONDS = 1_000_000


class WindowEvents:
    """The events that a stream of Kafka records has ingested within its window, by Kafka partition.

    See `IngestedEvents` for the methods.

    Args:
        plan: of the batch.
        store: the lakehouse.
        memory: of the process.
    """

    def __init__(self, plan: DedupPlan, store: Store, memory: WorkerMemory) -> None:
        self.window_seconds = plan.window_seconds
        self._plan = plan
        self._store = store
        self._memory = memory
        self._identities = Identities(plan.seed)
        self._known: dict[int, KnownEvents] = {}

    def identify(self, candidates: CandidateEvents) -> Iterator[IdentifiedEvents]:
        """Identify candidates, and compare each with the window of its Kafka partition."""
        # A producer whose clock is ahead must not move the window into the future.
        microseconds = np.minimum(candidates.kafka_microseconds, self._plan.clock)
        events = candidates.identified(self._identities, np.maximum(microseconds, 0) // _MICROSECONDS)
        for partition in np.unique(candidates.partitions).tolist():
            rows = np.flatnonzero(candidates.partitions == partition)
            here = events.take(rows)
            yield IdentifiedEvents(partition, rows, here, self._of_partition(partition).have(here))

    def _of_partition(self, number: int) -> KnownEvents:
        if number not in self._known:
            plan, files = self._plan, self._plan.known.get(number, ())
            known = self._memory.partition(plan.seed, plan.window_seconds, number, files, self._store)
            self._known[number] = known
        return self._known[number]

    def write(self, accepted: Mapping[int, Events]) -> EventsFile:
        """Write the identities of accepted events, by Kafka partition, as one file."""
        sections = {partition: (events, int(events.seconds.max())) for partition, events in accepted.items()}
        return write_identities(self._store, self._plan.folder, self._plan.batch_id, sections)


class OtherSources:
    """The events that other streams and replays have ingested; times are not compared.

    Args:
        taken: their identity files.
        store: the lakehouse.
        memory: of the process.
    """

    def __init__(self, taken: Sequence[OtherSourceEvents], store: Store, memory: WorkerMemory) -> None:
        self._sources = [(Identities(each.seed), each) for each in taken]
        self._store = store
        self._memory = memory

    def have(self, candidates: CandidateEvents) -> Flags:
        """Find the candidates that another stream or a replay has (bool, one per event, in order)."""
        result = np.zeros(len(candidates.codes), np.bool_)
        for identities, source in self._sources:
            known = self._memory.partition(source.seed, ANY_TIME, EVENTS_OF_FILES, source.files, self._store)
            result |= known.have(candidates.identified(identities, np.full(len(result), ANY_TIME, np.int64)))
        return result
