"""The events of a task that may be duplicates, and how a stream compares them with the events that it has ingested."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.layers.identity import Identities
from gamelake.layers.known_events import Events
from gamelake.ledger.manifests import EventsFile
from gamelake.model.arrays import Flags, Ints

EVENT_ID, EVENT_TIME = "event_id", "event_time"


@dataclass(frozen=True, slots=True)
class CandidateEvents:
    """Events of one message type that may be duplicates; the arrays (int64) have one element per event, in order.

    Attributes:
        events: with the column `event_id` (string), unless the message type has none.
        tables: the names of tables.
        codes: the index in `tables` of the event's table; negative for an event without a table.
        partitions: the Kafka partition.
        kafka_microseconds: the Kafka timestamp in microseconds since 1970.
    """

    events: pa.RecordBatch
    tables: list[str]
    codes: Ints
    partitions: Ints
    kafka_microseconds: Ints

    def with_id(self) -> Ints:
        """Find the events that have a table and an id; others can't be compared.

        Returns:
            Their positions (int64, ascending).
        """
        if self.events.schema.get_field_index(EVENT_ID) < 0:
            return np.zeros(0, np.int64)
        length = pc.fill_null(pc.binary_length(self.events.column(EVENT_ID)), 0).to_numpy()
        return np.flatnonzero((self.codes >= 0) & (length > 0))

    def take(self, rows: Ints) -> "CandidateEvents":
        """Return the events at some positions (int64, ascending, each once), with only the columns of a comparison."""
        if len(rows) == len(self.codes):
            return self
        compared = [name for name in (EVENT_ID, EVENT_TIME) if name in self.events.schema.names]
        return replace(
            self,
            events=self.events.select(compared).take(pa.array(rows)),
            codes=self.codes[rows],
            partitions=self.partitions[rows],
            kafka_microseconds=self.kafka_microseconds[rows],
        )

    def identified(self, identities: Identities, seconds: Ints) -> Events:
        """Compute the identities of the events, all of which have a table and an id.

        Args:
            identities: the hash.
            seconds: the times to compare, in seconds since 1970 (int64, one per event, in order).
        """
        return Events.of(*identities.of(self.tables, self.codes, self.events.column(EVENT_ID)), seconds)


@dataclass(frozen=True, slots=True)
class IdentifiedEvents:
    """Events that are compared only with each other, such as those of one Kafka partition.

    Attributes:
        partition: the partition of their identities in identity files.
        rows: their positions among the candidates (int64, ascending).
        events: their identities, in the same order.
        are_known: true for each event that was ingested before the task began (bool, one per event, in order).
    """

    partition: int
    rows: Ints
    events: Events
    are_known: Flags


class IngestedEvents(Protocol):
    """The events that a stream has ingested before a task, and how the task's events are compared with them.

    A filter calls `identify` on the task's thread for its candidates in order, and `write` at the end of each chunk. An
    error ends the task.
    """

    @property
    def window_seconds(self) -> int:
        """Events with times further apart are not duplicates; `ANY_TIME` for no such limit."""

    def identify(self, candidates: CandidateEvents) -> Iterator[IdentifiedEvents]:
        """Identify candidates, all of which have a table and an id; each belongs to one result.

        Raises:
            StoreError: the identities of ingested events can't be read.
        """

    def write(self, accepted: Mapping[int, Events]) -> EventsFile:
        """Write the identities of accepted events as one file; it counts once the batch's manifest names it.

        Args:
            accepted: the events by partition; at least one.
        """
