"""Finds the events that a table has already, read day by day at a fixed version."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.delta.appends import schema_of
from gamelake.delta.log.codec import FileEntry, live_files
from gamelake.delta.tables import open_table
from gamelake.layers.identity import Identities
from gamelake.layers.known_events import ANY_TIME, Events, KnownEvents, repeated
from gamelake.layers.routing import Router
from gamelake.layers.silver import EVENT_DATE
from gamelake.model.arrays import Flags, Ints
from gamelake.model.naming import QUARANTINE, SILVER_EVENTS
from gamelake.objects.store import Location
from gamelake.scans.datasets import dataset

_GAME = "game_name"
ID, PARTITION, OFFSET = "event_id", "kafka_partition", "kafka_offset"


def by_event(rows: pa.RecordBatch) -> pa.StringArray:
    """Name events by their ids, and events without an id by their Kafka coordinates.

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
    """Name events by Kafka coordinates and id, with the columns of `by_event`: offsets repeat in a recreated topic."""
    if rows.schema.get_field_index(ID) < 0:
        return _places(rows)
    return pc.binary_join_element_wise(_places(rows), pc.fill_null(rows.column(ID), ""), "/")


def _places(rows: pa.RecordBatch) -> pa.StringArray:
    places = [rows.column(name).cast(pa.string()) for name in (PARTITION, OFFSET)]
    return pc.binary_join_element_wise("record", *places, "/")


@dataclass(slots=True)
class _Day:
    """The known events of one table and day.

    Attributes:
        events: the events that the table has.
        taken: the events that were flagged before, each of which is flagged once.
        partitions: the Kafka partitions that were read; the events of files are read together with the first one.
        is_whole: True if all partitions were read.
    """

    events: KnownEvents = field(default_factory=lambda: KnownEvents(ANY_TIME))
    taken: KnownEvents = field(default_factory=lambda: KnownEvents(ANY_TIME))
    partitions: set[int] = field(default_factory=set)
    is_whole: bool = False


@dataclass
class Presence:
    """The events of tables at fixed versions, read lazily by day and Kafka partition.

    Both copies of an event that Kafka delivers twice are in the same partition, as the stream assumes too, so no other
    partition is read for it. An event from a file has a negative partition; Kafka may have delivered it in any
    partition. One thread calls the methods.

    Attributes:
        location: the lakehouse.
        versions: the version of each table that exists.
        router: assigns rows of tables of all games to games' tables.
        identities: the hash of the events' names.
        name: names each row's event: `by_event` or `by_record`.
    """

    location: Location
    versions: Mapping[str, int]
    router: Router
    identities: Identities
    name: Callable[[pa.RecordBatch], pa.StringArray]
    _tables: dict[str, "_Table"] = field(default_factory=dict)
    _days: defaultdict[tuple[str, str], _Day] = field(default_factory=lambda: defaultdict(_Day))

    def events(self, game_table: str, rows: pa.RecordBatch) -> Events:
        """Return the identities of rows of a game's table, in order; `rows` has the columns that `name` needs."""
        return self._events([game_table], np.zeros(len(rows), np.int64), rows)

    def _events(self, tables: list[str], codes: Ints, rows: pa.RecordBatch) -> Events:
        """Return the identities of rows; `codes` has for each row the index of its game's table in `tables`."""
        high, rest = self.identities.of(tables, codes, self.name(rows))
        return Events.of(high, rest, np.full(len(rows), ANY_TIME, np.int64))

    def missing(self, table: str, day: str, events: Events, partitions: Ints) -> Flags:
        """Flag the events that a table lacks; later calls do not flag them again.

        Args:
            table: the table to search.
            day: ISO date of the rows.
            events: identities, as `events` returns them.
            partitions: int64, the Kafka partition of each event.

        Returns:
            One bool for each event; only the first of equal events is flagged.
        """
        known = self._known(table, day, partitions)
        return _first(known, events, ~known.events.have(events))

    def present(self, table: str, day: str, events: Events, partitions: Ints) -> Flags:
        """Flag the events that a table has; arguments, order and result are as in `missing`."""
        known = self._known(table, day, partitions)
        return _first(known, events, known.events.have(events))

    def _known(self, table: str, day: str, partitions: Ints) -> _Day:
        known = self._days[table, day]
        rows = None if known.is_whole else _unread(known, {int(each) for each in np.unique(partitions)})
        if rows is not None and table in self.versions:
            known.events.add(self._read(table, day, rows))
        return known

    def _read(self, table: str, day: str, filtered: pc.Expression) -> Events:
        if table not in self._tables:
            self._tables[table] = _Table(self.location, table, self.versions[table])
        rows = self._tables[table].rows(day, filtered)
        if table not in (SILVER_EVENTS, QUARANTINE):
            return self.events(table, rows)
        codes = self.router.route(rows.column(_GAME))
        routed = np.flatnonzero(codes >= 0)
        return self._events(self.router.tables, codes[routed], rows.take(pa.array(routed)))


def _unread(known: _Day, asked: set[int]) -> pc.Expression | None:
    """Mark partitions as read, and return the filter of their unread rows, or None if all were read before."""
    partition, is_first = pc.field(PARTITION), not known.partitions
    read, unread = sorted(known.partitions), sorted(asked - known.partitions)
    if any(each < 0 for each in unread):
        known.is_whole = True
        return ~partition.isin(read) & ((partition >= 0) | is_first)
    known.partitions.update(unread)
    if not unread:
        return None
    return partition.isin(unread) | (partition < 0) if is_first else partition.isin(unread)


@dataclass
class _Table:
    """A table at a version, and its files by day."""

    location: Location
    table: str
    version: int

    @cached_property
    def _opened(self) -> tuple[pa.Schema, Mapping[str, list[FileEntry]]]:
        handle, days = open_table(self.location, self.table, self.version), defaultdict(list)
        for file in live_files(handle):
            days[file.partition.get(EVENT_DATE) or ""].append(file)
        return schema_of(handle), days

    def rows(self, day: str, filtered: pc.Expression) -> pa.RecordBatch:
        """Read the columns of a day's rows that identify events: game name, id, Kafka partition and offset."""
        schema, days = self._opened
        columns = [name for name in (_GAME, ID, PARTITION, OFFSET) if name in schema.names]
        of_day = dataset(self.location, self.table, schema, days.get(day, []))
        rows = of_day.to_table(columns=columns, filter=filtered)
        return rows.combine_chunks().to_batches()[0] if len(rows) else pa.RecordBatch.from_pylist([], rows.schema)


def _first(known: _Day, events: Events, wanted: Flags) -> Flags:
    """Flag the wanted events that no earlier call flagged; only the first of equal events."""
    new = np.flatnonzero(wanted & ~known.taken.have(events))
    new = new[~repeated(events.take(new), ANY_TIME)]
    known.taken.add(events.take(new))
    result = np.zeros(len(events), np.bool_)
    result[new] = True
    return result
