"""Where an event of a file stands among all records: coordinates as Kafka's, which no record of a topic can have.

A file's events have partition -1 - p and offsets from o * 2**28 on, where p and o are the partition and the offset of
the notification that named the file: 2**4 objects to a notification, 2**24 events to an object. So coordinates are
unique over both ways in, rise in the order in which files were named, and lead back to the notification.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from gamelake.layers.bronze import RECORD_SCHEMA
from gamelake.schemas.framing import Ints
from gamelake.streaming.files.notifications import ObjectName

MOST_OBJECTS, MOST_EVENTS = 2**4, 2**24


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPosition:
    """Which object of which notification; `microseconds` is when Kafka took the notification in."""

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
    """The partition and the offset of the notification behind an event's coordinates."""
    return -1 - partition, offset // (MOST_EVENTS * MOST_OBJECTS)


def headers_of(name: ObjectName) -> str:
    """An object's name as headers of its events, in the text that `bronze.headers` reads."""
    said: Mapping[str, str] = {"bucket": name.bucket, "object": name.key, "version": name.version, "etag": name.etag}
    pairs = [{"key": key, "value": value.encode().hex().upper()} for key, value in said.items() if value]
    return msgspec.json.encode(pairs).decode()


@dataclass(frozen=True, slots=True)
class ObjectCoordinates:
    """What the events of some objects have in common, by the objects' places in a list."""

    partitions: Ints
    first_offsets: Ints
    microseconds: Ints
    headers: pa.StringArray

    def records(self, values: pa.BinaryArray, objects: Ints, numbers: Ints) -> pa.RecordBatch:
        """Events as records: their values, the objects that they stand in, and their rows there from 0."""
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
    """The coordinates of objects, in their order."""
    return ObjectCoordinates(
        partitions=np.array([place.events_partition for place, _ in objects], np.int64),
        first_offsets=np.array([place.first_offset for place, _ in objects], np.int64),
        microseconds=np.array([place.microseconds for place, _ in objects], np.int64),
        headers=pa.array([headers_of(name) for _, name in objects], pa.string()),
    )
