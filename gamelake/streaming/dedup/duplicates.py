"""Finds the duplicates among the events of a task, and writes the identities of the others for later batches.

There is one filter. An `IngestedEvents` says how a stream identifies its events, and which of them it has ingested:
`WindowEvents` for records of Kafka, `SilverEvents` for events of files.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from gamelake.layers.known_events import Events, KnownEvents, repeated
from gamelake.ledger.manifests import EventsFile
from gamelake.model.arrays import Flags
from gamelake.model.naming import game_of
from gamelake.streaming.dedup.candidates import CandidateEvents, IdentifiedEvents, IngestedEvents
from gamelake.streaming.dedup.ingested import OtherSources


@dataclass(slots=True)
class _Partition:
    """The events that a task has accepted in one partition.

    Attributes:
        accepted: all of them.
        unwritten: those that `write` has not written yet.
    """

    accepted: KnownEvents
    unwritten: list[Events] = field(default_factory=list)

    def take(self, found: IdentifiedEvents) -> Flags:
        """Accept new events; return true for each duplicate (bool, one per event, in order)."""
        duplicates = found.are_known | self.accepted.have(found.events)
        new = np.flatnonzero(~duplicates)
        again = repeated(found.events.take(new), self.accepted.window_seconds)
        duplicates[new[again]] = True
        accepted = found.events.take(new[~again])
        if len(accepted):
            self.accepted.add(accepted)
            self.unwritten.append(accepted)
        return duplicates


class DuplicateFilter:
    """Finds the duplicates among the events of one task.

    A task calls `duplicates` for its events in order, and `write` at the end of each chunk, on one thread. An error
    ends the task; Spark runs the task again with a new filter, and files of the failed attempt don't count.

    Args:
        ingested: by the task's stream; None if deduplication is off, so that only events of others are duplicates.
        others: the events of other streams and of replays; None if there are none.
    """

    def __init__(self, ingested: IngestedEvents | None = None, others: OtherSources | None = None) -> None:
        self._ingested = ingested
        self._others = others
        self._partitions: dict[int, _Partition] = {}
        self._counts: Counter[str] = Counter()

    def duplicates(self, seen: CandidateEvents) -> Flags:
        """Find the duplicates (bool, one per event, in order); the others count as ingested from now on.

        Raises:
            StoreError: the identities of ingested events can't be read.
        """
        result = np.zeros(len(seen.codes), np.bool_)
        rows = seen.with_id()
        if len(rows):
            result[rows] = self._search(seen.take(rows))
        self._counts += _count_by_game(seen, result)
        return result

    def _search(self, candidates: CandidateEvents) -> Flags:
        known = self._others.have(candidates) if self._others else np.zeros(len(candidates.codes), np.bool_)
        rest = np.flatnonzero(~known)
        if self._ingested and len(rest):
            for found in self._ingested.identify(candidates.take(rest)):
                known[rest[found.rows]] = self._partition(found.partition, self._ingested).take(found)
        return known

    def _partition(self, number: int, ingested: IngestedEvents) -> _Partition:
        if number not in self._partitions:
            self._partitions[number] = _Partition(KnownEvents(ingested.window_seconds))
        return self._partitions[number]

    def write(self) -> tuple[EventsFile | None, dict[str, int]]:
        """Write the identities since the last call as one file.

        Returns:
            The file, None if there are no identities; and the number of duplicates since the last call, by game.
        """
        counts, self._counts = dict(self._counts), Counter()
        accepted = {
            number: Events.joined(partition.unwritten)
            for number, partition in self._partitions.items()
            if partition.unwritten
        }
        for partition in self._partitions.values():
            partition.unwritten = []
        return self._ingested.write(accepted) if self._ingested and accepted else None, counts


def _count_by_game(seen: CandidateEvents, duplicates: Flags) -> Counter[str]:
    codes, counts = np.unique(seen.codes[duplicates], return_counts=True)
    return Counter({game_of(seen.tables[code]) or "": int(count) for code, count in zip(codes, counts, strict=True)})
