"""Which events a table holds already."""

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

ID, PARTITION, OFFSET = "event_id", "kafka_partition", "kafka_offset"


def by_event(rows: pa.RecordBatch) -> pa.StringArray:
    """Each event by its id, wherever it came from; one without an id by its record."""
    places = _places(rows)
    if rows.schema.get_field_index(ID) < 0:
        return places
    ids = rows.column(ID)
    return pc.if_else(pc.greater(pc.fill_null(pc.binary_length(ids), 0), 0), ids, places)


def by_record(rows: pa.RecordBatch) -> pa.StringArray:
    """Each event by its record and its id: offsets alone begin anew when a topic is made again."""
    if rows.schema.get_field_index(ID) < 0:
        return _places(rows)
    return pc.binary_join_element_wise(_places(rows), pc.fill_null(rows.column(ID), ""), "/")


@dataclass(frozen=True, slots=True)
class EventNames:
    """Gives rows the identities by which they are compared."""

    identities: Identities
    of: Callable[[pa.RecordBatch], pa.StringArray]

    def events(self, tables: list[str], codes: npt.NDArray[np.int64], rows: pa.RecordBatch) -> Events:
        """Rows of games' tables, a row of `tables[code]`, as events."""
        high, rest = self.identities.of(tables, codes, self.of(rows))
        return Events.of(high, rest, np.full(len(rows), ANY_TIME, np.int64))


def _places(rows: pa.RecordBatch) -> pa.StringArray:
    places = [rows.column(name).cast(pa.string()) for name in (PARTITION, OFFSET)]
    return pc.binary_join_element_wise("record", *places, "/")


_GAME = "game_name"
Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Day:
    """What is known of one table and day, and of which Kafka partitions."""

    events: KnownEvents = field(default_factory=lambda: KnownEvents(ANY_TIME))
    taken: KnownEvents = field(default_factory=lambda: KnownEvents(ANY_TIME))
    partitions: set[int] = field(default_factory=set)


@dataclass
class Presence:
    """The events of tables at versions that stay the same; read day by day, as they are asked for.

    An event that comes again does so in the same Kafka partition, as for the stream: of the others nothing is read.
    """

    location: Location
    versions: Mapping[str, int]
    router: Router
    names: EventNames
    _tables: dict[str, "_Table"] = field(default_factory=dict)
    _days: defaultdict[tuple[str, str], _Day] = field(default_factory=lambda: defaultdict(_Day))

    def events(self, game_table: str, rows: pa.RecordBatch) -> Events:
        """The rows of a game's table as events."""
        return self.names.events([game_table], np.zeros(len(rows), np.int64), rows)

    def missing(self, table: str, day: str, events: Events, partitions: Ints) -> Flags:
        """Which events a table lacks, each once; from now on they count as taken."""
        known = self._known(table, day, partitions)
        return _first(known, events, ~known.events.have(events))

    def present(self, table: str, day: str, events: Events, partitions: Ints) -> Flags:
        """Which events a table has, each once."""
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
        """Of a day's rows what tells them apart."""
        schema, days = self._opened
        columns = [name for name in (_GAME, ID, PARTITION, OFFSET) if name in schema.names]
        of_day = dataset(self.location, self.table, schema, days.get(day, []))
        rows = of_day.to_table(columns=columns, filter=pc.field(PARTITION).isin(list(partitions)))
        return rows.combine_chunks().to_batches()[0] if len(rows) else _empty(rows.schema)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


def _first(known: _Day, events: Events, wanted: Flags) -> Flags:
    """Of the wanted events those that were not wanted before."""
    new = np.flatnonzero(wanted & ~known.taken.have(events))
    new = new[~repeated(events.take(new), ANY_TIME)]
    known.taken.add(events.take(new))
    result = np.zeros(len(events), np.bool_)
    result[new] = True
    return result
