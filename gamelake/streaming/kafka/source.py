"""The Kafka topic that a stream reads: Spark's source plans the offsets of batches, whose tasks read the records."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined] # the stubs lack it
from pyspark.sql import DataFrame, SparkSession

from gamelake.kafka import KafkaAccess
from gamelake.ledger.manifests import BatchManifest, OffsetRange
from gamelake.model.errors import CheckpointError, GamelakeError, KafkaUnavailableError, OffsetGapError, StartupError
from gamelake.session import java_causes
from gamelake.streaming.kafka.batch_records import BatchRecords, KafkaRecords
from gamelake.streaming.kafka.consumers import PartitionRange
from gamelake.streaming.kafka.reader import RECORDS_ARE_GONE

_REQUEST_SECONDS = 15.0
# Longer than the request: librdkafka then reports the timeout itself, with its reason.
_RESULT_SECONDS = 2 * _REQUEST_SECONDS
_AUTHENTICATION_SECONDS = 3.0
# The class and the condition of Spark's Kafka source; the conditions are in its jar, error/kafka-error-conditions.json.
_KAFKA_ERROR = "org.apache.spark.sql.kafka010.KafkaIllegalStateException"
_DATA_LOSS = "KAFKA_DATA_LOSS"
_UNAVAILABLE = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 # librdkafka's own codes begin with an underscore
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._TRANSPORT,  # noqa: SLF001
    }
)


@dataclass(frozen=True, slots=True)
class PlannedOffsets:
    """The offsets that a batch must read.

    Attributes:
        before: the next offset by partition before the batch, without partitions that are new to the stream.
        after: the next offset by partition after the batch.
    """

    before: Mapping[int, int]
    after: Mapping[int, int]

    @property
    def ranges(self) -> list[PartitionRange]:
        """The offsets to read, in the order of partitions; a new partition is read from its beginning."""
        ranges = (PartitionRange(each, self.before.get(each, 0), end) for each, end in sorted(self.after.items()))
        return [each for each in ranges if each.offsets > 0]

    @property
    def records(self) -> int:
        """The largest number of records that the batch can read: some offsets may hold no record."""
        return sum(each.offsets for each in self.ranges)


def taken_offsets(planned: PlannedOffsets, read: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Return the planned offset range of each partition, with the number of records that were read in it.

    Args:
        planned: the offsets that the batch had to read.
        read: the offsets that its tasks have read, one range for each partition.

    Returns:
        One range for each partition with planned offsets, in the order of partitions.

    Raises:
        OffsetGapError: tasks read records outside the plan.
    """
    by_partition = {taken.partition: taken for taken in read}
    ranges = []
    for partition, end in sorted(planned.after.items()):
        found = by_partition.pop(partition, None)
        start = planned.before.get(partition, found.first if found else end)
        if found and not start <= found.first <= found.last < end:
            raise OffsetGapError(
                f"partition {partition}: read offsets {found.first} to {found.last}, planned were {start} to "
                f"{end - 1}. Nothing of this batch was committed; start the job again"
            )
        if start < end:
            records = found.records if found else 0
            ranges.append(OffsetRange(partition=partition, first=start, last=end - 1, records=records))
    if by_partition:
        raise OffsetGapError(
            f"records of partitions {sorted(by_partition)} were read, which the batch did not plan to read. Nothing of "
            "this batch was committed; start the job again"
        )
    return tuple(ranges)


def check_same_offsets(manifest: BatchManifest, after: Mapping[int, int]) -> None:
    """Check that a decided batch ends at the offsets that the checkpoint has for it.

    Raises:
        CheckpointError: the batch ends at other offsets: the checkpoint is an old copy or another stream's.
    """
    for taken in manifest.offsets:
        if after.get(taken.partition) != taken.last + 1:
            raise CheckpointError(
                f"batch {manifest.batch_id} took partition {taken.partition} up to offset {taken.last}, but in the "
                f"checkpoint it ends at {after.get(taken.partition, 0) - 1}: the checkpoint is an old copy. "
                "Rebuild it from the manifests with jobs/rebuild_checkpoint.py"
            )


class SourceTopic:
    """A Kafka topic: its id, its earliest offsets, and its records as a stream."""

    def __init__(self, kafka: KafkaAccess, name: str) -> None:
        self._kafka = kafka
        self._name = name
        # No log: librdkafka would report each lost connection on stderr; the query reports errors itself.
        self._admin = AdminClient({**kafka.for_clients(), "log_level": 0})

    def id(self) -> str:
        """Return the id that Kafka gave the topic when it was created; a recreated topic has another id.

        Raises:
            KafkaUnavailableError: Kafka does not respond.
            StartupError: the topic does not exist, or access is denied.
        """
        response = self._admin.describe_topics(TopicCollection([self._name]), request_timeout=_REQUEST_SECONDS)
        try:
            return str(response[self._name].result(_RESULT_SECONDS).topic_id)
        except KafkaException as error:
            raise self._unreadable(error) from error

    def earliest_offsets(self) -> dict[int, int]:
        """Return the first offset that Kafka still holds, by partition.

        Raises:
            KafkaUnavailableError: Kafka does not respond.
            StartupError: the topic does not exist, or access is denied.
        """
        description = self._admin.describe_topics(TopicCollection([self._name]), request_timeout=_REQUEST_SECONDS)
        try:
            partitions = [found.id for found in description[self._name].result(_RESULT_SECONDS).partitions]
            earliest = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
            request = {TopicPartition(self._name, partition): earliest for partition in partitions}
            responses = self._admin.list_offsets(request, request_timeout=_REQUEST_SECONDS)
            return {each.partition: response.result(_RESULT_SECONDS).offset for each, response in responses.items()}
        except KafkaException as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: KafkaException) -> GamelakeError:
        kafka_error: KafkaError = error.args[0]
        where = f"the topic '{self._name}' at {self._kafka.bootstrap_servers}"
        if kafka_error.code() in _UNAVAILABLE and _rejects_credentials(self._kafka):
            return StartupError(f"{where} can't be read: Kafka refuses the user name or the password")
        if kafka_error.code() in _UNAVAILABLE or kafka_error.retriable():
            return KafkaUnavailableError(f"{where} does not respond: {kafka_error.str()}")
        return StartupError(f"{where} can't be read: {kafka_error.str()}")

    def stream(self, spark: SparkSession, max_offsets_per_trigger: int) -> DataFrame:
        """Return the topic as a stream from its beginning, which plans the offsets of batches.

        Its rows are never requested: the tasks of a batch read the records themselves.

        Args:
            spark: the session of the query.
            max_offsets_per_trigger: the largest number of offsets of a batch.
        """
        options = {
            **self._kafka.for_spark(),
            "subscribe": self._name,
            "startingOffsets": "earliest",
            "failOnDataLoss": "true",
            "kafka.isolation.level": "read_committed",
            "maxOffsetsPerTrigger": str(max_offsets_per_trigger),
        }
        return spark.readStream.format("kafka").options(**options).load()

    def batch(self, planning: DataFrame, planned: PlannedOffsets) -> BatchRecords:
        """Return the records of a batch; read nothing yet.

        Args:
            planning: the batch of the stream, as Spark passes it to the batch function.
            planned: the offsets of the batch.
        """
        return KafkaRecords(planning.sparkSession, self._kafka, self._name, planned.ranges)


def offset_gap(error: Exception) -> OffsetGapError | None:
    """Return the error for records that Kafka deleted before they were read; None if `error` has another cause."""
    if any(cause.class_name == _KAFKA_ERROR and cause.condition.startswith(_DATA_LOSS) for cause in java_causes(error)):
        return OffsetGapError(RECORDS_ARE_GONE)
    return None


def _rejects_credentials(kafka: KafkaAccess) -> bool:
    """Return True if Kafka rejects the credentials: the failed request itself only reports a timeout."""
    codes: set[int] = set()
    # A new client: a long-lived one that is not polled would queue an error for each attempt to connect.
    settings: dict[str, Any] = {**kafka.for_clients(), "log_level": 0}
    client = AdminClient(settings | {"error_cb": lambda error: codes.add(error.code())})
    latest = time.monotonic() + _AUTHENTICATION_SECONDS
    while not codes and time.monotonic() < latest:
        client.poll(_AUTHENTICATION_SECONDS / 10)
    return KafkaError._AUTHENTICATION in codes  # noqa: SLF001
