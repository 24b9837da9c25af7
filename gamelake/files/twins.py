"""Finds events of files that silver has already, or that another file of the same batch brings."""

import time
import uuid
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.fanout.duplicates import EVENT_ID, Sightings, by_game, with_an_id
from gamelake.fanout.elsewhere import EVENTS_OF_FILES
from gamelake.files.plan import Twins
from gamelake.files.silver_ids import SilverIds
from gamelake.lake.manifest import EventsFile, EventsSection
from gamelake.lake.store import Store
from gamelake.silver.identity import Identities
from gamelake.silver.known_events import ANY_TIME, Events, Flags, KnownEvents, repeated
from gamelake.silver.routing import Router

# In the files of identities, beside those of events: which contents of objects were taken, and which keys.
OBJECTS, KEYS = 0, 1


class TwinFilter:
    """The duplicates of one task; an event without an id has none."""

    def __init__(self, plan: Twins, store: Store, router: Router, claimed: bytes) -> None:
        self._plan = plan
        self._store = store
        self._identities = Identities(plan.seed)
        self._silver = SilverIds(store, plan.silver, plan.uncommitted, router, self._identities, plan.remembered)
        self._taken = KnownEvents(ANY_TIME)
        if claimed:
            self._taken.add(Events.unpack(claimed))
        self._unwritten: list[Events] = []
        self._counts: Counter[str] = Counter()

    def duplicates(self, seen: Sightings) -> Flags:
        """Which of the events are duplicates; the others count as taken from now on."""
        result = np.zeros(len(seen.codes), np.bool_)
        rows = with_an_id(seen)
        if not len(rows):
            return result
        ids = seen.events.column(EVENT_ID).take(pa.array(rows))
        high, rest = self._identities.of(seen.tables, seen.codes[rows], ids)
        events = Events.of(high, rest, np.full(len(rows), ANY_TIME, np.int64))
        result[rows] = self._take(events, seen.events.column("event_time").take(pa.array(rows)))
        self._counts += by_game(seen, result)
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
        """Write what was taken since the last time as one file; gives it, and the duplicates by game."""
        counts, self._counts = dict(self._counts), Counter()
        if not self._unwritten:
            return None, counts
        events, self._unwritten = Events.joined(self._unwritten), []
        path = f"{self._plan.folder}/{self._plan.batch_id:012d}-{uuid.uuid4()}"
        self._store.put(path, events.pack())
        section = EventsSection(partition=EVENTS_OF_FILES, start=0, events=len(events), newest=int(time.time()))
        return EventsFile(path=path, sections=(section,)), counts
