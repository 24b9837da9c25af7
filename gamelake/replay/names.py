"""What rows are told apart by: the event's id where it has one, or the record that it came in."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.silver.identity import Identities
from gamelake.silver.known_events import ANY_TIME, Events

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
class Names:
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
