"""Reads offset ranges of a Kafka topic with librdkafka into Arrow, in the tasks of a batch or in the driver.

Spark's source plans which offsets a batch reads; its rows are never requested. A range ends at its last record, or, if
its last offsets hold none (compacted, aborted or markers of transactions), where Kafka reports the end of the partition
or a later record.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, cast

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from gamelake.kafka import KafkaAccess
from gamelake.layers.bronze import RECORD_SCHEMA, TIMESTAMP, Headers, header_lists
from gamelake.model.errors import GamelakeError, KafkaUnavailableError, OffsetGapError, StartupError

MIB = 2**20
# A batch has at most so many records, and so many bytes of values without the messages of its last request.
_BATCH_RECORDS = 20_000
_AT_ONCE = 500
_BATCH_BYTES = 16 * MIB
_QUEUED_KIB = 32 * 1024
_NO_PROGRESS_SECONDS = 120.0
_POLL_SECONDS = 0.2
Ints: TypeAlias = npt.NDArray[np.int64]
_SETTINGS: dict[str, str | int | bool] = {
    # Partitions are assigned, never by the group; but librdkafka needs a name, which the rights of users allow.
    "group.id": "spark-kafka-tasks",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "check.crcs": True,
    "fetch.wait.max.ms": 50,
    "fetch.max.bytes": 16 * MIB,
    "fetch.message.max.bytes": 4 * MIB,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": _QUEUED_KIB,
    # How long a fetch waits while the queue is full: the default of a second would leave the task without records.
    "fetch.queue.backoff.ms": 5,
    "log_level": 0,
}
# What stands for the headers of a record if a name is not UTF-8.
UNREADABLE_HEADERS: Headers = [("\ufffd", None)]
_DENIED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError._AUTHENTICATION,  # noqa: SLF001 # librdkafka's own codes begin with an underscore
    }
)
_DELETED = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})  # noqa: SLF001
_DAMAGED = frozenset({KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION})  # noqa: SLF001


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


class FailureKind(StrEnum):
    """Why a range could not be read."""

    DELETED = "deleted"
    DENIED = "denied"
    UNAVAILABLE = "unavailable"


class ReadFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A failure to read, as a task reports it to the driver: Spark passes exceptions of tasks on as text only."""

    kind: FailureKind
    detail: str

    def as_error(self) -> GamelakeError:
        """The error to raise in the driver."""
        if self.kind is FailureKind.DELETED:
            return OffsetGapError(
                f"{self.detail}: Kafka has deleted records, by retention, that the checkpoint had not read yet, or the "
                "partition ends before them. Nothing of this batch was committed. The deleted records are lost; to "
                "skip them and continue with the rest, run jobs/rebuild_checkpoint.py --skip-lost"
            )
        if self.kind is FailureKind.DENIED:
            return StartupError(self.detail)
        return KafkaUnavailableError(self.detail)


class ReadError(Exception):
    """A range could not be read.

    Attributes:
        failure: why.
    """

    def __init__(self, failure: ReadFailure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


class RangeReader:
    """A consumer of one topic that is assigned what it reads, range by range; not for use by several threads.

    Args:
        kafka: where Kafka is.
        topic: the topic.
        patience: seconds without any record before Kafka counts as unavailable.
    """

    def __init__(self, kafka: KafkaAccess, topic: str, patience: float = _NO_PROGRESS_SECONDS) -> None:
        self._where = f"the topic '{topic}' at {kafka.bootstrap_servers}"
        self._topic = topic
        self._patience = patience
        self._last_error: KafkaError | None = None
        self._consumer = Consumer({**_SETTINGS, **kafka.for_clients(), "error_cb": self._note})

    def _note(self, error: KafkaError) -> None:
        self._last_error = error

    def read(self, ranges: Sequence[PartitionRange]) -> Iterator[pa.RecordBatch]:
        """Read the records of ranges of different partitions.

        Args:
            ranges: one for each partition.

        Returns:
            Batches in the columns of `RECORD_SCHEMA`, in the order of offsets within each partition; of at most 20,000
            records, and of at most 16 MiB of values and what was queued (32 MiB).

        Raises:
            ReadError: Kafka does not have the records any more, does not respond, or denies access.
        """
        pending = _Pending(ranges)
        if not pending:
            return
        assigned = [TopicPartition(self._topic, each.partition, each.start) for each in ranges if each.offsets > 0]
        self._consumer.assign(assigned)
        try:
            yield from _batches(self._messages(pending), pending)
        finally:
            self._consumer.unassign()

    def _messages(self, pending: "_Pending") -> Iterator[list[Message]]:
        """The messages of pending ranges as they come, until none is pending."""
        latest = time.monotonic() + self._patience
        while pending:
            # What is queued, at once: the queue's limit then bounds the memory.
            found = self._consumer.consume(_AT_ONCE, 0) or self._consumer.consume(1, _POLL_SECONDS)
            events: list[tuple[KafkaError, int, int]] = []
            if any(map(Message.error, found)):
                events = [each for each in map(_event, found) if each is not None]
                found = [message for message in found if message.error() is None]
            if found or events:
                latest = time.monotonic() + self._patience
            elif time.monotonic() > latest:
                raise ReadError(self._silence(pending))
            if found:
                yield found
            # After the records that were queued before them.
            for error, partition, offset in events:
                self._handle(error, partition, offset, pending)
            for partition in pending.newly_done():
                self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])

    def _handle(self, error: KafkaError, partition: int, offset: int, pending: "_Pending") -> None:
        """Take note of the end of a partition, or of an error."""
        code = error.code()
        if code == KafkaError._PARTITION_EOF:  # noqa: SLF001
            pending.reach(partition, offset)
        elif code in _DELETED:
            start = pending.next_offset(partition)
            raise ReadError(
                ReadFailure(
                    kind=FailureKind.DELETED,
                    detail=f"{self._where}, partition {partition}, offset {start}: {error.str()}",
                )
            )
        elif code in _DENIED:
            raise ReadError(ReadFailure(kind=FailureKind.DENIED, detail=f"{self._where} can't be read: {error.str()}"))
        elif code in _DAMAGED:
            detail = f"{self._where}, partition {partition}: Kafka has sent a damaged record: {error.str()}"
            raise ReadError(ReadFailure(kind=FailureKind.UNAVAILABLE, detail=detail))
        else:
            self._last_error = error

    def _silence(self, pending: "_Pending") -> ReadFailure:
        reason = f": {self._last_error.str()}" if self._last_error else ""
        detail = f"{self._where} has sent no record of {pending} for {self._patience:g} s{reason}"
        denied = self._last_error is not None and self._last_error.code() in _DENIED
        return ReadFailure(kind=FailureKind.DENIED if denied else FailureKind.UNAVAILABLE, detail=detail)


def _event(message: Message) -> tuple[KafkaError, int, int] | None:
    """The error, partition and offset of a message that is no record; None for a record."""
    error, partition, offset = message.error(), message.partition(), message.offset()
    if error is None:
        return None
    return error, -1 if partition is None else partition, -1 if offset is None else offset


class _Pending:
    """The ranges that are not read to their ends yet."""

    def __init__(self, ranges: Iterable[PartitionRange]) -> None:
        self._ranges = {each.partition: each for each in ranges if each.offsets > 0}
        self._next = {partition: each.start for partition, each in self._ranges.items()}
        self._done: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def __str__(self) -> str:
        places = (f"partition {partition} from offset {self._next[partition]}" for partition in sorted(self._ranges))
        return ", ".join(places)

    def next_offset(self, partition: int) -> int:
        """The offset that is read next in a partition."""
        return self._next.get(partition, 0)

    def reach(self, partition: int, offset: int) -> None:
        """Note that everything before an offset of a partition was read."""
        pending = self._ranges.get(partition)
        if pending is None:
            return
        self._next[partition] = max(self._next[partition], offset)
        if offset >= pending.end:
            del self._ranges[partition]
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
            pending = self._ranges.get(partition)
            if pending is None:
                continue
            here = partitions == partition
            taken |= here & (offsets >= self._next[partition]) & (offsets < pending.end)
            self.reach(partition, int(offsets[here][-1]) + 1)
        return taken


def _batches(messages: Iterator[list[Message]], pending: _Pending) -> Iterator[pa.RecordBatch]:
    """Join messages into batches."""
    collected = _Collected()
    for found in messages:
        partitions = np.fromiter(map(Message.partition, found), np.int64, len(found))
        offsets = np.fromiter(map(Message.offset, found), np.int64, len(found))
        taken = pending.take(partitions, offsets)
        if taken.all():
            collected.add(found, partitions, offsets)
        else:
            rows = np.flatnonzero(taken)
            collected.add([found[row] for row in rows.tolist()], partitions[rows], offsets[rows])
        if collected.is_full():
            yield collected.as_batch()
            collected = _Collected()
    if collected.keys:
        yield collected.as_batch()


@dataclass(slots=True)
class _Collected:
    """The fields of records, one element for each record; of partitions and offsets one array for each call of `add`.

    Not the messages themselves: Python's garbage collection, which visits messages but no bytes, took half of the time.
    """

    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    partitions: list[Ints] = field(default_factory=list)
    offsets: list[Ints] = field(default_factory=list)
    milliseconds: list[int] = field(default_factory=list)
    headers: list[Headers | None] = field(default_factory=list)
    bytes: int = 0

    def add(self, messages: Sequence[Message], partitions: Ints, offsets: Ints) -> None:
        self.keys += map(Message.key, messages)
        self.values += map(Message.value, messages)
        self.partitions.append(partitions)
        self.offsets.append(offsets)
        self.milliseconds += [each[1] for each in map(Message.timestamp, messages)]
        self.headers += _headers_of(messages)
        self.bytes += sum(map(len, messages))

    def is_full(self) -> bool:
        return len(self.keys) > _BATCH_RECORDS - _AT_ONCE or self.bytes >= _BATCH_BYTES

    def as_batch(self) -> pa.RecordBatch:
        """Columns of `RECORD_SCHEMA`; the timestamp of a record without one is null."""
        milliseconds = np.array(self.milliseconds, np.int64)
        columns = [
            pa.array(self.keys, pa.binary()),
            pa.array(self.values, pa.binary()),
            pa.array(np.concatenate(self.partitions).astype(np.int32)),
            pa.array(np.concatenate(self.offsets)),
            pa.array(milliseconds * 1000, mask=milliseconds < 0).cast(TIMESTAMP),
            header_lists(self.headers),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)


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
