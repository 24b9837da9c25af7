"""Coordinates of events of files: a partition and an offset that no Kafka record can have.

The events of a file have the partition -1 - p and offsets from o * 2**28, where p and o are the partition and the
offset of the file's notification: a notification has up to 2**4 objects, an object up to 2**24 events. So coordinates
are unique across both sources, ascend in the order of notifications, and identify the notification.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gamelake.layers.bronze import RECORD_SCHEMA, header_lists
from gamelake.ledger.coordinates import MOST_EVENTS, MOST_OBJECTS
from gamelake.model.arrays import Ints
from gamelake.streaming.files.arrivals.notifications import ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPosition:
    """The position of an object in a notification.

    Attributes:
        partition: the Kafka partition of the notification.
        offset: the Kafka offset of the notification.
        index: of the object in the notification, from 0.
        microseconds: the Kafka timestamp of the notification, in microseconds since 1970.
    """

    partition: int
    offset: int
    index: int
    microseconds: int

    @property
    def events_partition(self) -> int:
        """The partition of the object's events."""
        return -1 - self.partition

    @property
    def first_offset(self) -> int:
        """The offset of the object's first event."""
        return (self.offset * MOST_OBJECTS + self.index) * MOST_EVENTS


def notification_of(partition: int, offset: int) -> tuple[int, int]:
    """Return the partition and the offset of an event's notification, from the event's coordinates."""
    return -1 - partition, offset // (MOST_EVENTS * MOST_OBJECTS)


def headers_of(name: ObjectName) -> list[tuple[str, bytes]]:
    """Convert an object's name to the headers of its events."""
    headers: Mapping[str, str] = {"bucket": name.bucket, "object": name.key, "version": name.version, "etag": name.etag}
    return [(key, value.encode()) for key, value in headers.items() if value]


@dataclass(frozen=True, slots=True)
class ObjectCoordinates:
    """The coordinates of some objects, one element per object, in order.

    Attributes:
        partitions: the partition of the object's events (int64).
        first_offsets: the offset of the object's first event (int64).
        microseconds: the Kafka timestamp of the notification, in microseconds since 1970 (int64).
        headers: the headers of the object's events.
    """

    partitions: Ints
    first_offsets: Ints
    microseconds: Ints
    headers: pa.ListArray

    def records(self, values: pa.BinaryArray, objects: Ints, numbers: Ints) -> pa.RecordBatch:
        """Build records from events.

        Args:
            values: the Kafka values (binary), one per event.
            objects: the index of each event's object (int64).
            numbers: the row of each event in its object, from 0 (int64).

        Returns:
            The columns of RECORD_SCHEMA, in the order of `values`.
        """
        columns = {
            "key": pa.nulls(len(values), pa.binary()),
            "value": values,
            "partition": pa.array(self.partitions[objects].astype(np.int32)),
            "offset": pa.array(self.first_offsets[objects] + numbers),
            "timestamp": pa.array(self.microseconds[objects]).view(pa.timestamp("us", "UTC")),
            "headers": self.headers.take(pa.array(objects)),
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in RECORD_SCHEMA.names], schema=RECORD_SCHEMA)


def object_coordinates(objects: list[tuple[ObjectPosition, ObjectName]]) -> ObjectCoordinates:
    """Compute the coordinates of objects, in order."""
    return ObjectCoordinates(
        partitions=np.array([place.events_partition for place, _ in objects], np.int64),
        first_offsets=np.array([place.first_offset for place, _ in objects], np.int64),
        microseconds=np.array([place.microseconds for place, _ in objects], np.int64),
        headers=header_lists([headers_of(name) for _, name in objects]),
    )
