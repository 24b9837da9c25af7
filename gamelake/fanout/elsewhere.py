"""Events that another stream has taken, for the tasks of this one: they are duplicates too."""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from gamelake.fanout.duplicates import EVENT_ID, Filter, Sightings, by_game, with_an_id
from gamelake.fanout.known import WorkerMemory
from gamelake.fanout.plan import TakenElsewhere
from gamelake.lake.manifest import EventsFile
from gamelake.lake.store import Store
from gamelake.silver.identity import Identities
from gamelake.silver.known_events import ANY_TIME, Events, Flags, KnownEvents
from gamelake.silver.routing import NOWHERE

# Where the identities of events stand in the files of the stream that reads files.
EVENTS_OF_FILES = 2

# What a worker process has read, by lakehouse and seed: kept from task to task.
_memories: dict[tuple[str, str], WorkerMemory] = {}


@dataclass
class NotTakenElsewhere:
    """Finds what was taken elsewhere, and has another filter look at the rest."""

    then: Filter
    taken: tuple[TakenElsewhere, ...]
    store: Store
    _counts: Counter[str] = field(default_factory=Counter)

    def duplicates(self, seen: Sightings) -> Flags:
        """Which of the events are duplicates; the others count as taken from now on."""
        elsewhere = self._elsewhere(seen)
        self._counts += by_game(seen, elsewhere)
        rest = replace(seen, codes=np.where(elsewhere, NOWHERE, seen.codes)) if elsewhere.any() else seen
        return elsewhere | self.then.duplicates(rest)

    def _elsewhere(self, seen: Sightings) -> Flags:
        result = np.zeros(len(seen.codes), np.bool_)
        rows = with_an_id(seen)
        if not len(rows):
            return result
        ids = seen.events.column(EVENT_ID).take(pa.array(rows))
        for each in self.taken:
            high, rest = Identities(each.seed).of(seen.tables, seen.codes[rows], ids)
            events = Events.of(high, rest, np.full(len(rows), ANY_TIME, np.int64))
            result[rows] |= self._known(each).have(events)
        return result

    def _known(self, taken: TakenElsewhere) -> KnownEvents:
        key = (self.store.location.uri, taken.seed)
        memory = _memories.setdefault(key, WorkerMemory(ANY_TIME))
        return memory.events(EVENTS_OF_FILES, taken.files, self.store)

    def write(self) -> tuple[EventsFile | None, dict[str, int]]:
        """Write what was taken since the last time as one file; gives it, and the duplicates by game."""
        counts, self._counts = self._counts, Counter()
        file, others = self.then.write()
        return file, dict(counts + Counter(others))
