"""Reads offset ranges of a Kafka topic into Arrow, in the tasks of a batch or in the driver.

Spark's source plans which offsets a batch reads; its rows are never requested.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec
import pyarrow as pa
from confluent_kafka import KafkaError

from gamelake.kafka import KafkaAccess
from gamelake.model.errors import (
    GamelakeError,
    KafkaUnavailableError,
    OffsetGapError,
    PoisonError,
    StartupError,
)
from gamelake.streaming.kafka.consumers import ConsumerError, PartitionRange, RangeConsumer, Settings, range_consumer

MIB = 2**20
_BATCH_RECORDS = 20_000
_BATCH_BYTES = 16 * MIB
_QUEUED_KIB = 32 * 1024
_NO_PROGRESS_SECONDS = 120.0
_POLL_SECONDS = 0.2
_SETTINGS: Settings = {
    # The group assigns no partitions; but librdkafka needs a group, and the users' access rights allow this one.
    "group.id": "spark-kafka-tasks",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "isolation.level": "read_committed",
    "check.crcs": "true",
    # All records of a batch exist: at the end of one partition a fetch must not wait, because others have records.
    "fetch.wait.max.ms": 5,
    "fetch.max.bytes": 16 * MIB,
    "fetch.message.max.bytes": 4 * MIB,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": _QUEUED_KIB,
    # The wait of a fetch while the queue is full: with the default of a second the task would run out of records.
    "fetch.queue.backoff.ms": 5,
    "log_level": 0,
}
RECORDS_ARE_GONE = (
    "Kafka has deleted records, by retention, that the checkpoint had not read yet, or the partition ends before them. "
    "Nothing of this batch was committed. The deleted records are lost; to skip them and continue with the rest, run "
    "jobs/rebuild_checkpoint.py --skip-lost"
)
_DENIED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError._AUTHENTICATION,  # noqa: SLF001 # librdkafka's own codes begin with an underscore
    }
)
_DELETED = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})  # noqa: SLF001
_DAMAGED = frozenset({KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION})  # noqa: SLF001


class FailureKind(StrEnum):
    """The reason why a task could not process its records: Kafka's answer, or the content of the records."""

    DELETED = "deleted"
    DENIED = "denied"
    UNAVAILABLE = "unavailable"
    CONTENT = "content"


class TaskFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A failure, as a task reports it to the driver: Spark forwards exceptions of tasks only as text.

    Attributes:
        kind: of the failure.
        detail: the place and the reason, without any content of a record.
    """

    kind: FailureKind
    detail: str

    def as_error(self) -> GamelakeError:
        """Return the error to raise in the driver."""
        if self.kind is FailureKind.DELETED:
            return OffsetGapError(f"{self.detail}: {RECORDS_ARE_GONE}")
        if self.kind is FailureKind.DENIED:
            return StartupError(self.detail)
        if self.kind is FailureKind.CONTENT:
            return PoisonError(self.detail)
        return KafkaUnavailableError(self.detail)


class ReadError(Exception):
    """A range could not be read.

    Attributes:
        failure: the reason.
    """

    def __init__(self, failure: TaskFailure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


class RangeReader:
    """Reads offset ranges of one topic; not for use by several threads.

    Args:
        kafka: how to connect.
        topic: the name of the topic.
        patience: seconds without any record or end of a partition before Kafka counts as unavailable.
        consumer: creates the consumer from settings of librdkafka and the name of the topic.

    Attributes:
        consumer: the consumer of the topic; it stays connected between reads.
    """

    def __init__(
        self,
        kafka: KafkaAccess,
        topic: str,
        patience: float = _NO_PROGRESS_SECONDS,
        consumer: Callable[[Settings, str], RangeConsumer] = range_consumer,
    ) -> None:
        self._where = f"the topic '{topic}' at {kafka.bootstrap_servers}"
        self._patience = patience
        self.consumer = consumer({**_SETTINGS, **kafka.for_clients()}, topic)

    def read(self, ranges: Sequence[PartitionRange]) -> Iterator[pa.RecordBatch]:
        """Read the records of ranges of different partitions.

        Args:
            ranges: one for each partition.

        Yields:
            Batches in the columns of `RECORD_SCHEMA`, in the order of offsets within each partition. A batch has at
            most 20,000 records, and at most 16 MiB plus the consumer's queue (32 MiB).

        Raises:
            ReadError: Kafka has deleted the records, does not respond, or denies access.
        """
        self.consumer.assign(ranges)
        try:
            yield from self._batches()
        finally:
            self.consumer.unassign()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        error: ConsumerError | None = None
        # An error from before this read does not explain why Kafka is silent now.
        former = self.consumer.last_error()
        pending, latest = self.consumer.pending(), time.monotonic() + self._patience
        while pending:
            batch, errors = self.consumer.take(_BATCH_RECORDS, _BATCH_BYTES, _POLL_SECONDS)
            if batch is not None:
                yield batch
            for error in errors:
                self._check(error, pending)
            before, pending = pending, self.consumer.pending()
            if pending != before:
                error, former, latest = None, self.consumer.last_error(), time.monotonic() + self._patience
            elif time.monotonic() > latest:
                newest = self.consumer.last_error()
                raise ReadError(self._silence(pending, error or (newest if newest != former else None)))

    def _check(self, error: ConsumerError, pending: Mapping[int, int]) -> None:
        """Raise an error that can't be resolved by waiting: deleted or damaged records, or denied access."""
        place = f"{self._where}, partition {error.partition}, offset {pending.get(error.partition, -1)}: {error.text}"
        if error.code in _DELETED:
            raise ReadError(TaskFailure(kind=FailureKind.DELETED, detail=place))
        if error.code in _DENIED:
            detail = f"{self._where} can't be read: {error.text}"
            raise ReadError(TaskFailure(kind=FailureKind.DENIED, detail=detail))
        if error.code in _DAMAGED:
            raise ReadError(
                TaskFailure(kind=FailureKind.UNAVAILABLE, detail=f"{place}: Kafka has sent damaged records")
            )

    def _silence(self, pending: Mapping[int, int], error: ConsumerError | None) -> TaskFailure:
        places = ", ".join(
            f"partition {partition} from offset {offset}" for partition, offset in sorted(pending.items())
        )
        reason = f": {error.text}" if error else ""
        detail = f"{self._where} has sent no record of {places} for {self._patience:g} s{reason}"
        denied = error is not None and error.code in _DENIED
        return TaskFailure(kind=FailureKind.DENIED if denied else FailureKind.UNAVAILABLE, detail=detail)
