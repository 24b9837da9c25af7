"""Which events a table has already, read day by day at a fixed version."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.layers.identity import Identities
from gamelake.layers.known_events import ANY_TIME, Events, Flags, KnownEvents, repeated
from gamelake.layers.routing import Router
from gamelake.layers.silver import EVENT_DATE
from gamelake.model.naming import QUARANTINE, SILVER_EVENTS
from gamelake.storage.appends import schema_of
from gamelake.storage.datasets import dataset
from gamelake.storage.delta_log import FileEntry, live_files
from gamelake.storage.store import Location
from gamelake.storage.tables import open_table

_GAME = "game_name"
ID, PARTITION, OFFSET = "event_id", "kafka_partition", "kafka_offset"

Ints = npt.NDArray[np.int64]


def by_event(rows: pa.RecordBatch) -> pa.StringArray:
    """Names events by their ids; an event without an id by its Kafka coordinates.

    Args:
        rows: columns `kafka_partition`, `kafka_offset` and, if the table has it, `event_id` (string).

    Returns:
        A name for each row, in their order; never null.
    """
    places = _places(rows)
    if rows.schema.get_field_index(ID) < 0:
        return places
    ids = rows.column(ID)
    return pc.if_else(pc.greater(pc.fill_null(pc.binary_length(ids), 0), 0), ids, places)


def by_record(rows: pa.RecordBatch) -> pa.StringArray:
    """Names events by Kafka coordinates and id: offsets alone repeat after a topic was made again.

    Args:
        rows: columns `kafka_partition`, `kafka_offset` and, if the table has it, `event_id` (string).

    Returns:
        A name for each row, in their order; never null.
    """
    if rows.schema.get_field_index(ID) < 0:
        return _places(rows)
    return pc.binary_join_element_wise(_places(rows), pc.fill_null(rows.column(ID), ""), "/")


@dataclass(frozen=True, slots=True)
class EventNames:
    """Gives rows the identities by which events are compared."""

    identities: Identities
    of: Callable[[pa.RecordBatch], pa.StringArray]

    def events(self, tables: list[str], codes: npt.NDArray[np.int64], rows: pa.RecordBatch) -> Events:
        """The identities of rows of games' tables.

        Args:
            tables: names of games' tables.
            codes: int64, for each row the index of its table in `tables`.
            rows: the columns that `of` names rows by.
        """
        high, rest = self.identities.of(tables, codes, self.of(rows))
        return Events.of(high, rest, np.full(len(rows), ANY_TIME, np.int64))


def _places(rows: pa.RecordBatch) -> pa.StringArray:
    places = [rows.column(name).cast(pa.string()) for name in (PARTITION, OFFSET)]
    return pc.binary_join_element_wise("record", *places, "/")


@dataclass(slots=True)
class _Day:
    """The known events of one table and day; `partitions` are the Kafka partitions that were read."""

    events: KnownEvents = field(default_factory=lambda: KnownEvents(ANY_TIME))
    taken: KnownEvents = field(default_factory=lambda: KnownEvents(ANY_TIME))
    partitions: set[int] = field(default_factory=set)


@dataclass
class Presence:
    """The events of tables at fixed versions, read lazily by day and Kafka partition.

    Duplicates of an event are in the same Kafka partition, as the stream assumes too; other partitions are not read.
    """

    location: Location
    versions: Mapping[str, int]
    router: Router
    names: EventNames
    _tables: dict[str, "_Table"] = field(default_factory=dict)
    _days: defaultdict[tuple[str, str], _Day] = field(default_factory=lambda: defaultdict(_Day))

    def events(self, game_table: str, rows: pa.RecordBatch) -> Events:
        """The identities of rows of a game's table, in their order."""
        return self.names.events([game_table], np.zeros(len(rows), np.int64), rows)

    def missing(self, table: str, day: str, events: Events, partitions: Ints) -> Flags:
        """Flag the events that a table lacks; they count as taken from now on.

        Args:
            table: the table to look in.
            day: ISO date of the rows.
            events: identities, as `events` returns them.
            partitions: int64, the Kafka partition of each event.

        Returns:
            A bool for each event; of equal events only the first is flagged.
        """
        known = self._known(table, day, partitions)
        return _first(known, events, ~known.events.have(events))

    def present(self, table: str, day: str, events: Events, partitions: Ints) -> Flags:
        """Flag the events that a table has; arguments and order as in `missing`, of equal events only the first."""
        known = self._known(table, day, partitions)
        return _first(known, events, known.events.have(events))

    def _known(self, table: str, day: str, partitions: Ints) -> _Day:
        known = self._days[table, day]
        unread = sorted({int(each) for each in np.unique(partitions)} - known.partitions)
        if unread:
            known.partitions.update(unread)
            if table in self.versions:
                known.events.add(self._read(table, day, unread))
        return known

    def _read(self, table: str, day: str, partitions: Sequence[int]) -> Events:
        if table not in self._tables:
            self._tables[table] = _Table(self.location, table, self.versions[table])
        rows = self._tables[table].rows(day, partitions)
        if table not in (SILVER_EVENTS, QUARANTINE):
            return self.names.events([table], np.zeros(len(rows), np.int64), rows)
        codes = self.router.route(rows.column(_GAME))
        routed = np.flatnonzero(codes >= 0)
        return self.names.events(self.router.tables, codes[routed], rows.take(pa.array(routed)))


@dataclass
class _Table:
    """A version of a table, and its files by day."""

    location: Location
    table: str
    version: int

    @cached_property
    def _opened(self) -> tuple[pa.Schema, Mapping[str, list[FileEntry]]]:
        handle, days = open_table(self.location, self.table, self.version), defaultdict(list)
        for file in live_files(handle):
            days[file.partition.get(EVENT_DATE) or ""].append(file)
        return schema_of(handle), days

    def rows(self, day: str, partitions: Sequence[int]) -> pa.RecordBatch:
        """The columns of a day's rows that identify events: game name, id, Kafka partition and offset."""
        schema, days = self._opened
        columns = [name for name in (_GAME, ID, PARTITION, OFFSET) if name in schema.names]
        of_day = dataset(self.location, self.table, schema, days.get(day, []))
        rows = of_day.to_table(columns=columns, filter=pc.field(PARTITION).isin(list(partitions)))
        return rows.combine_chunks().to_batches()[0] if len(rows) else _empty(rows.schema)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


def _first(known: _Day, events: Events, wanted: Flags) -> Flags:
    """Flag the wanted events that were not taken before, each once."""
    new = np.flatnonzero(wanted & ~known.taken.have(events))
    new = new[~repeated(events.take(new), ANY_TIME)]
    known.taken.add(events.take(new))
    result = np.zeros(len(events), np.bool_)
    result[new] = True
    return result
