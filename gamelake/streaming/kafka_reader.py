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
from gamelake.model.errors import GamelakeError, KafkaUnavailableError, OffsetGapError, StartupError
from gamelake.streaming.kafka_consumers import ConsumerError, PartitionRange, RangeConsumer, Settings, range_consumer

MIB = 2**20
_BATCH_RECORDS = 20_000
_BATCH_BYTES = 16 * MIB
_QUEUED_KIB = 32 * 1024
_NO_PROGRESS_SECONDS = 120.0
_POLL_SECONDS = 0.2
_SETTINGS: Settings = {
    # Partitions are assigned, never by the group; but librdkafka needs a name, which the rights of users allow.
    "group.id": "spark-kafka-tasks",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "isolation.level": "read_committed",
    "check.crcs": "true",
    # What a batch reads is there: where one partition ends, a fetch must not wait for more, as others have records.
    "fetch.wait.max.ms": 5,
    "fetch.max.bytes": 16 * MIB,
    "fetch.message.max.bytes": 4 * MIB,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": _QUEUED_KIB,
    # How long a fetch waits while the queue is full: the default of a second would leave the task without records.
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
            return OffsetGapError(f"{self.detail}: {RECORDS_ARE_GONE}")
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
        patience: seconds without any record or end of a partition before Kafka counts as unavailable.
        consumer: makes the consumer of a topic, from settings of librdkafka.

    Attributes:
        consumer: of the topic.
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

        Returns:
            Batches in the columns of `RECORD_SCHEMA`, in the order of offsets within each partition; of at most 20,000
            records, and of at most 16 MiB and what was queued (32 MiB).

        Raises:
            ReadError: Kafka does not have the records any more, does not respond, or denies access.
        """
        self.consumer.assign(ranges)
        try:
            yield from self._batches()
        finally:
            self.consumer.unassign()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        error: ConsumerError | None = None
        pending, latest = self.consumer.pending(), time.monotonic() + self._patience
        while pending:
            batch, errors = self.consumer.take(_BATCH_RECORDS, _BATCH_BYTES, _POLL_SECONDS)
            if batch is not None:
                yield batch
            for error in errors:
                self._check(error, pending)
            before, pending = pending, self.consumer.pending()
            if pending != before:
                latest = time.monotonic() + self._patience
            elif time.monotonic() > latest:
                raise ReadError(self._silence(pending, error or self.consumer.last_error()))

    def _check(self, error: ConsumerError, pending: Mapping[int, int]) -> None:
        """Raise what no patience helps against."""
        place = f"{self._where}, partition {error.partition}, offset {pending.get(error.partition, -1)}: {error.text}"
        if error.code in _DELETED:
            raise ReadError(ReadFailure(kind=FailureKind.DELETED, detail=place))
        if error.code in _DENIED:
            detail = f"{self._where} can't be read: {error.text}"
            raise ReadError(ReadFailure(kind=FailureKind.DENIED, detail=detail))
        if error.code in _DAMAGED:
            raise ReadError(
                ReadFailure(kind=FailureKind.UNAVAILABLE, detail=f"{place}: Kafka has sent damaged records")
            )

    def _silence(self, pending: Mapping[int, int], error: ConsumerError | None) -> ReadFailure:
        places = ", ".join(
            f"partition {partition} from offset {offset}" for partition, offset in sorted(pending.items())
        )
        reason = f": {error.text}" if error else ""
        detail = f"{self._where} has sent no record of {places} for {self._patience:g} s{reason}"
        denied = error is not None and error.code in _DENIED
        return ReadFailure(kind=FailureKind.DENIED if denied else FailureKind.UNAVAILABLE, detail=detail)
