"""Consumers of offset ranges of a Kafka topic: `gamelake_native` in Rust, and one in Python where that is not built.

Both use the librdkafka of the package `confluent-kafka`, and pass the same tests. A range is read once a record at or
after its last offset was there, or Kafka has reported that the partition ends behind it: its last offsets may hold no
record (compacted, aborted or markers of transactions).
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
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from gamelake.layers.bronze import HEADERS, RECORD_SCHEMA, TIMESTAMP, Headers, header_lists

Ints: TypeAlias = npt.NDArray[np.int64]
Settings: TypeAlias = Mapping[str, str | int]
# What stands for the headers of a record if a name is not UTF-8.
UNREADABLE_HEADERS: Headers = [("\ufffd", None)]
_NATIVE = "gamelake_native"
# Few enough that Python's garbage collection does not visit each message several times, which took half of the time.
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """The offsets of a Kafka partition from `start` up to, without, `end`."""

    partition: int
    start: int
    end: int

    @property
    def offsets(self) -> int:
        """How many: the most records that there can be."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class ConsumerError:
    """An error of librdkafka: its code, its text, and the partition that it is about; -1 if it is about none."""

    code: int
    text: str
    partition: int = -1


class RangeConsumer(Protocol):
    """Reads offset ranges of a topic; not for use by several threads."""

    def assign(self, ranges: Sequence[PartitionRange]) -> None:
        """Begin to read ranges, one for each partition."""

    def unassign(self) -> None:
        """Stop reading."""

    def pending(self) -> dict[int, int]:
        """The next offset of each partition whose range is not read to its end."""

    def take(self, records: int, size: int, seconds: float) -> tuple[pa.RecordBatch | None, list[ConsumerError]]:
        """Read until the batch is full, all ranges are read, an error comes, or time has passed.

        Args:
            records: the most records of the batch.
            size: bytes of keys, values and headers from which the batch is full. It may exceed them by what the
                consumer had queued.
            seconds: the longest time.

        Returns:
            The records in the columns of `RECORD_SCHEMA`, in the order of offsets within each partition; None if there
            are none. And the errors that came.
        """

    def last_error(self) -> ConsumerError | None:
        """The newest error of the client as a whole, such as a lost connection."""


def range_consumer(settings: Settings, topic: str) -> RangeConsumer:
    """The fastest consumer that is installed.

    Args:
        settings: of librdkafka.
        topic: the topic.
    """
    return (NativeConsumer if has_native_consumer() else PythonConsumer)(settings, topic)


def has_native_consumer() -> bool:
    """Whether `gamelake_native` is installed, and the library that it loads."""
    return find_spec(_NATIVE) is not None and librdkafka() is not None


def librdkafka() -> Path | None:
    """The shared library in the package `confluent-kafka`; None if it has none, as on systems without a wheel."""
    package = Path(confluent_kafka.__file__).parent
    # By the tools that pack wheels for Linux and for macOS.
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
        """The records in the columns of `RECORD_SCHEMA`; see `RangeConsumer`."""
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
        "timestamp": _array(pa.timestamp("ms", "UTC"), length, found["milliseconds"]).cast(TIMESTAMP),
        "headers": _header_lists(found) if "headers" in found else pa.nulls(length, HEADERS),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in RECORD_SCHEMA.names], schema=RECORD_SCHEMA)


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
        """The records in the columns of `RECORD_SCHEMA`; see `RangeConsumer`."""
        collected, errors = _Collected(), list[ConsumerError]()
        latest = time.monotonic() + seconds
        while self._pending.next_offsets and not errors and len(collected.keys) < records and collected.size < size:
            left = latest - time.monotonic()
            if left <= 0:
                break
            # What is queued, at once: the queue's limit then bounds the memory.
            most = min(_AT_ONCE, records - len(collected.keys))
            errors += self._add(self._consumer.consume(most, 0) or self._consumer.consume(1, left), collected)
            for partition in self._pending.newly_done():
                self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])
        return collected.as_batch() if collected.keys else None, errors

    def _add(self, found: list[Message], collected: "_Collected") -> list[ConsumerError]:
        """Collect the records of messages; give the errors among them, and note the ends of partitions."""
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
    """The error and offset of a message that is no record; None for a record."""
    error, partition, offset = message.error(), message.partition(), message.offset()
    if error is None:
        return None
    return ConsumerError(
        error.code(), error.str(), -1 if partition is None else partition
    ), -1 if offset is None else offset


class _Pending:
    """The ranges that are not read to their ends.

    Attributes:
        next_offsets: the next offset of each, by partition.
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
        """The partitions that were read to their ends since the last call."""
        done, self._done = self._done, []
        return done

    def take(self, partitions: Ints, offsets: Ints) -> npt.NDArray[np.bool_]:
        """Note records as read.

        Args:
            partitions: one for each record (int64).
            offsets: one for each record (int64), ascending within each partition.

        Returns:
            Which records are in pending ranges (bool), one for each.
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
    """The fields of records, an element for each; of partitions and offsets an array for each call of `add`."""

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
        """Columns of `RECORD_SCHEMA`; the timestamp of a record without one is null."""
        milliseconds = np.array(self.milliseconds, np.int64)
        columns = {
            "key": pa.array(self.keys, pa.binary()),
            "value": pa.array(self.values, pa.binary()),
            "partition": pa.array(np.concatenate(self.partitions).astype(np.int32)),
            "offset": pa.array(np.concatenate(self.offsets)),
            "timestamp": pa.array(milliseconds * 1000, mask=milliseconds < 0).cast(TIMESTAMP),
            "headers": header_lists(self.headers),
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in RECORD_SCHEMA.names], schema=RECORD_SCHEMA)


def _headers_of(messages: Sequence[Message]) -> list[Headers | None]:
    """The headers of each message; `UNREADABLE_HEADERS` where a name is not UTF-8, which the client can't convert."""
    found: list[Headers | None] = []
    while len(found) < len(messages):
        try:
            # The stubs know the forms that producers may give as well.
            found.extend(cast("Iterable[Headers | None]", map(Message.headers, messages[len(found) :])))
        except SystemError:
            # Headers of this message must not be requested again: the client then returns what crashes the process.
            found.append(UNREADABLE_HEADERS)
    return found
