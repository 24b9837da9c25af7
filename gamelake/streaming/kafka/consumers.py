"""Consumers of offset ranges of a Kafka topic: `gamelake_native` in Rust, and a Python one if that is not built.

Both use the librdkafka of the package `confluent-kafka`, and pass the same tests. The last offsets of a range may hold
no record (compacted, aborted, or markers of transactions). So a range counts as read when a record at or after its last
offset has arrived, or when Kafka has reported the partition's end after it.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import confluent_kafka
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from gamelake.layers.bronze import HEADERS, RECORD_SCHEMA, TIMESTAMP, Headers, header_lists
from gamelake.model.arrays import Flags, Ints

Settings: TypeAlias = Mapping[str, str | int]
# Replaces the headers of a record if a name is not UTF-8.
UNREADABLE_HEADERS: Headers = [("\ufffd", None)]
_NATIVE = "gamelake_native"
# The end of the year 9999: Python, Spark and Trino support no later date.
_LAST_MILLISECOND = 253_402_300_799_999
# With more messages Python's garbage collection visits each of them several times, which takes half of the time.
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """A range of offsets of a Kafka partition.

    Attributes:
        partition: the number of the partition.
        start: the first offset.
        end: the offset after the last one.
    """

    partition: int
    start: int
    end: int

    @property
    def offsets(self) -> int:
        """The number of offsets: the largest possible number of records."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class ConsumerError:
    """An error of librdkafka.

    Attributes:
        code: of librdkafka.
        text: for people.
        partition: the number of the partition that it concerns; -1 if it concerns the client.
    """

    code: int
    text: str
    partition: int = -1


class RangeConsumer(Protocol):
    """Reads offset ranges of a topic; not for use by several threads.

    The caller calls `assign`, then `take` until `pending` is empty, then `unassign`; after that it may assign other
    ranges. Errors of Kafka are returned by `take` and `last_error`, and the caller decides whether they end the read.
    An exception means that the consumer can't be used.
    """

    def assign(self, ranges: Sequence[PartitionRange]) -> None:
        """Begin to read ranges, one for each partition."""

    def unassign(self) -> None:
        """Stop reading."""

    def pending(self) -> dict[int, int]:
        """Return the next offset by partition, of the partitions whose range is not read to its end."""

    def take(self, records: int, size: int, seconds: float) -> tuple[pa.RecordBatch | None, list[ConsumerError]]:
        """Read until the batch is full, all ranges are read, an error occurs, or the time has passed.

        Args:
            records: the largest number of records of the batch.
            size: bytes of keys, values and headers from which the batch is full. The batch may be larger by the
                consumer's queue.
            seconds: the longest time to wait.

        Returns:
            The records in the columns of `RECORD_SCHEMA`, in the order of offsets within each partition, None if there
            are none; and the errors that occurred.
        """

    def last_error(self) -> ConsumerError | None:
        """Return the newest error of the client as a whole, such as a lost connection; None if there was none."""


def range_consumer(settings: Settings, topic: str) -> RangeConsumer:
    """Create the fastest consumer that is installed.

    Args:
        settings: of librdkafka.
        topic: the topic.
    """
    return (NativeConsumer if has_native_consumer() else PythonConsumer)(settings, topic)


def has_native_consumer() -> bool:
    """Return True if `gamelake_native` and the library that it loads are installed."""
    return find_spec(_NATIVE) is not None and librdkafka() is not None


def librdkafka() -> Path | None:
    """Find the shared library in the package `confluent-kafka`; None if it has none, as on systems without a wheel."""
    package = Path(confluent_kafka.__file__).parent
    # The folders of the tools that build wheels for Linux and for macOS.
    found = [*package.with_name("confluent_kafka.libs").glob("librdkafka*"), *package.glob(".dylibs/librdkafka*")]
    return found[0] if found else None


class NativeConsumer:
    """The consumer of `gamelake_native`: builds the columns in Rust.

    Args:
        settings: of librdkafka.
        topic: the topic.
    """

    def __init__(self, settings: Settings, topic: str) -> None:
        texts = [(name, str(value)) for name, value in settings.items()]
        self._consumer: Any = import_module(_NATIVE).RangeConsumer(str(librdkafka()), texts, topic)

    def assign(self, ranges: Sequence[PartitionRange]) -> None:
        """See `RangeConsumer`."""
        self._consumer.assign([(each.partition, each.start, each.end) for each in ranges])

    def unassign(self) -> None:
        """See `RangeConsumer`."""
        self._consumer.unassign()

    def pending(self) -> dict[int, int]:
        """See `RangeConsumer`."""
        return dict(self._consumer.pending())

    def take(self, records: int, size: int, seconds: float) -> tuple[pa.RecordBatch | None, list[ConsumerError]]:
        """Read records in the columns of `RECORD_SCHEMA`; see `RangeConsumer`."""
        columns, errors = self._consumer.take(records, size, seconds)
        return columns and _from_buffers(columns), [ConsumerError(*each) for each in errors]

    def last_error(self) -> ConsumerError | None:
        """See `RangeConsumer`."""
        error = self._consumer.last_error()
        return error and ConsumerError(*error)


def _from_buffers(found: Mapping[str, Any]) -> pa.RecordBatch:
    length = found["length"]
    columns = {
        "key": _array(pa.binary(), length, found["key"]),
        "value": _array(pa.binary(), length, found["value"]),
        "partition": _array(pa.int32(), length, [None, found["partition"]]),
        "offset": _array(pa.int64(), length, [None, found["offset"]]),
        "timestamp": arrival_times(_array(pa.int64(), length, found["milliseconds"])),
        "headers": _header_lists(found) if "headers" in found else pa.nulls(length, HEADERS),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in RECORD_SCHEMA.names], schema=RECORD_SCHEMA)


def arrival_times(milliseconds: pa.Array) -> pa.Array:
    """Convert Kafka's timestamps to ones that every table, engine and calendar supports.

    Producers choose timestamps: some set none, and some set microseconds or nanoseconds instead of milliseconds.

    Args:
        milliseconds: Kafka's timestamps since 1970 (int64), one per record; null or negative for a record without one.

    Returns:
        Timestamps in microseconds (UTC), one per record, never null. A time outside 1970 to 9999 is replaced by the
        present.
    """
    given = pc.fill_null(milliseconds, 0).to_numpy()
    usable = (given > 0) & (given <= _LAST_MILLISECOND)
    return pa.array(np.where(usable, given, time.time_ns() // 1_000_000) * 1000).cast(TIMESTAMP)


def _array(
    arrow: pa.DataType, length: int, buffers: Sequence[bytes | None], children: Sequence[pa.Array] = ()
) -> pa.Array:
    memory = [None if each is None else pa.py_buffer(each) for each in buffers]
    return pa.Array.from_buffers(arrow, length, memory, children=list(children) or None)


def _header_lists(found: Mapping[str, Any]) -> pa.ListArray:
    count = len(found["names"][1]) // 4 - 1
    names = _array(pa.string(), count, found["names"])
    values = _array(pa.binary(), count, found["values"])
    pairs = pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type))
    return _array(HEADERS, found["length"], found["headers"], [pairs])


class PythonConsumer:
    """The consumer of the package `confluent-kafka`: a Python object for each message.

    Args:
        settings: of librdkafka.
        topic: the topic.
    """

    def __init__(self, settings: Settings, topic: str) -> None:
        self._topic = topic
        self._last_error: ConsumerError | None = None
        self._pending = _Pending(())
        self._consumer = Consumer({**settings, "error_cb": self._note})

    def _note(self, error: KafkaError) -> None:
        self._last_error = ConsumerError(error.code(), error.str())

    def assign(self, ranges: Sequence[PartitionRange]) -> None:
        """See `RangeConsumer`."""
        self._pending = _Pending(ranges)
        self._consumer.assign(
            [TopicPartition(self._topic, partition, offset) for partition, offset in self._pending.next_offsets.items()]
        )

    def unassign(self) -> None:
        """See `RangeConsumer`."""
        self._pending = _Pending(())
        self._consumer.unassign()

    def pending(self) -> dict[int, int]:
        """See `RangeConsumer`."""
        return dict(self._pending.next_offsets)

    def take(self, records: int, size: int, seconds: float) -> tuple[pa.RecordBatch | None, list[ConsumerError]]:
        """Read records in the columns of `RECORD_SCHEMA`; see `RangeConsumer`."""
        collected, errors = _Collected(), list[ConsumerError]()
        latest = time.monotonic() + seconds
        while self._pending.next_offsets and not errors and len(collected.keys) < records and collected.size < size:
            left = latest - time.monotonic()
            if left <= 0:
                break
            # First the queued messages, without waiting: so the queue's limit bounds the memory.
            most = min(_AT_ONCE, records - len(collected.keys))
            errors += self._add(self._consumer.consume(most, 0) or self._consumer.consume(1, left), collected)
            for partition in self._pending.newly_done():
                self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])
        return collected.as_batch() if collected.keys else None, errors

    def _add(self, found: list[Message], collected: "_Collected") -> list[ConsumerError]:
        """Collect the records of messages, note the ends of partitions, and return the errors of the messages."""
        events: list[tuple[ConsumerError, int]] = []
        if any(map(Message.error, found)):
            events = [each for each in map(_event, found) if each is not None]
            found = [message for message in found if message.error() is None]
        partitions = np.fromiter(map(Message.partition, found), np.int64, len(found))
        offsets = np.fromiter(map(Message.offset, found), np.int64, len(found))
        rows = np.flatnonzero(self._pending.take(partitions, offsets))
        if len(rows) < len(found):
            found = [found[row] for row in rows.tolist()]
        collected.add(found, partitions[rows], offsets[rows])
        # After the records that were queued before them.
        for error, offset in events:
            if error.code == KafkaError._PARTITION_EOF:  # noqa: SLF001 # librdkafka's own codes begin with an underscore
                self._pending.reach(error.partition, offset)
        return [error for error, _ in events if error.code != KafkaError._PARTITION_EOF]  # noqa: SLF001

    def last_error(self) -> ConsumerError | None:
        """See `RangeConsumer`."""
        return self._last_error


def _event(message: Message) -> tuple[ConsumerError, int] | None:
    """Return the error and offset of a message that has an error; None for a record."""
    error, partition, offset = message.error(), message.partition(), message.offset()
    if error is None:
        return None
    return ConsumerError(
        error.code(), error.str(), -1 if partition is None else partition
    ), -1 if offset is None else offset


class _Pending:
    """The ranges that are not read to their ends.

    Attributes:
        next_offsets: the next offset of each range, by partition.
    """

    def __init__(self, ranges: Iterable[PartitionRange]) -> None:
        wanted = [each for each in ranges if each.offsets > 0]
        self.next_offsets = {each.partition: each.start for each in wanted}
        self._ends = {each.partition: each.end for each in wanted}
        self._done: list[int] = []

    def reach(self, partition: int, offset: int) -> None:
        """Note that everything before an offset of a partition was read."""
        if partition not in self.next_offsets:
            return
        self.next_offsets[partition] = max(self.next_offsets[partition], offset)
        if self.next_offsets[partition] >= self._ends[partition]:
            del self.next_offsets[partition]
            self._done.append(partition)

    def newly_done(self) -> list[int]:
        """Return the partitions that were read to the ends of their ranges since the last call."""
        done, self._done = self._done, []
        return done

    def take(self, partitions: Ints, offsets: Ints) -> Flags:
        """Note records as read.

        Args:
            partitions: one for each record (int64).
            offsets: one for each record (int64), ascending within each partition.

        Returns:
            True for each record in a pending range (bool, one per record).
        """
        taken = np.zeros(len(offsets), np.bool_)
        for partition in np.unique(partitions).tolist():
            if partition in self.next_offsets:
                here = partitions == partition
                taken |= here & (offsets >= self.next_offsets[partition]) & (offsets < self._ends[partition])
                self.reach(partition, int(offsets[here][-1]) + 1)
        return taken


@dataclass(slots=True)
class _Collected:
    """The fields of records, one element per record; partitions and offsets have one array per call of `add`."""

    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    partitions: list[Ints] = field(default_factory=list)
    offsets: list[Ints] = field(default_factory=list)
    milliseconds: list[int] = field(default_factory=list)
    headers: list[Headers | None] = field(default_factory=list)
    size: int = 0

    def add(self, messages: Sequence[Message], partitions: Ints, offsets: Ints) -> None:
        self.keys += map(Message.key, messages)
        self.values += map(Message.value, messages)
        self.partitions.append(partitions)
        self.offsets.append(offsets)
        self.milliseconds += [each[1] for each in map(Message.timestamp, messages)]
        self.headers += _headers_of(messages)
        self.size += sum(map(len, messages))

    def as_batch(self) -> pa.RecordBatch:
        """Return the records in the columns of `RECORD_SCHEMA`, in the order of `add`."""
        columns = {
            "key": pa.array(self.keys, pa.binary()),
            "value": pa.array(self.values, pa.binary()),
            "partition": pa.array(np.concatenate(self.partitions).astype(np.int32)),
            "offset": pa.array(np.concatenate(self.offsets)),
            "timestamp": arrival_times(pa.array(self.milliseconds, pa.int64())),
            "headers": header_lists(self.headers),
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in RECORD_SCHEMA.names], schema=RECORD_SCHEMA)


def _headers_of(messages: Sequence[Message]) -> list[Headers | None]:
    """Return the headers of each message; `UNREADABLE_HEADERS` if the client can't decode a name as UTF-8."""
    found: list[Headers | None] = []
    while len(found) < len(messages):
        try:
            # The stubs also allow the types that producers may pass.
            found.extend(cast("Iterable[Headers | None]", map(Message.headers, messages[len(found) :])))
        except SystemError:
            # A second request for the headers of this message would crash the process.
            found.append(UNREADABLE_HEADERS)
    return found
