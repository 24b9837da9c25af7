"""The records of a batch: which task reads which offset ranges, and how it reports that it could not."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from gamelake.kafka import KafkaAccess
from gamelake.layers.bronze import RECORD_SCHEMA
from gamelake.streaming.kafka_consumers import PartitionRange
from gamelake.streaming.kafka_reader import RangeReader, ReadError, ReadFailure

# One consumer for all tasks of a worker process: it stays connected from batch to batch.
_readers: dict[tuple[KafkaAccess, str], RangeReader] = {}


class RecordTask(Protocol):
    """What a task does with its records."""

    def __call__(self, batches: Iterator[pa.RecordBatch], /) -> Iterator[pa.RecordBatch]:
        """Process records in the columns of `RECORD_SCHEMA`; yield rows of results."""

    def failed(self, failure: ReadFailure, /) -> pa.RecordBatch:
        """Rows that report a failure to read, in the columns of the results; rows yielded before do not count."""


class BatchRecords(Protocol):
    """The records of one batch."""

    @property
    def spark(self) -> SparkSession:
        """The session of the query."""

    def process(self, task: RecordTask, row_types: str, tasks: int) -> DataFrame:
        """The results of at most `tasks` tasks that read the records, in Spark's types; each partition in one task."""

    def reports(self, task: RecordTask, tasks: int) -> list[bytes]:
        """Run at most `tasks` tasks that read the records, each partition in one.

        Returns:
            The values of the tasks' column `report` (binary).
        """

    def read(self) -> pa.Table:
        """All records, in the columns of `RECORD_SCHEMA`, in the order of offsets within each partition.

        Raises:
            GamelakeError: Kafka does not have the records any more, does not respond, or denies access.
        """


@dataclass(frozen=True, slots=True)
class KafkaRecords:
    """The records of offset ranges of a topic."""

    spark: SparkSession
    kafka: KafkaAccess
    topic: str
    ranges: Sequence[PartitionRange]

    def process(self, task: RecordTask, row_types: str, tasks: int) -> DataFrame:
        """See `BatchRecords`."""
        shares = shared_out(self.ranges, tasks) or [[]]
        numbers = self.spark.range(0, len(shares), 1, len(shares))
        return numbers.mapInArrow(ReadingTask(self.kafka, self.topic, shares, task), row_types)

    def reports(self, task: RecordTask, tasks: int) -> list[bytes]:
        """See `BatchRecords`.

        Spark takes 20 ms longer to plan a DataFrame than an RDD, and runs its tasks in Python workers of their own.
        """
        shares = shared_out(self.ranges, tasks) or [[]]
        numbers = self.spark.sparkContext.parallelize(range(len(shares)), len(shares))
        return numbers.mapPartitions(ReadingTask(self.kafka, self.topic, shares, task).reports).collect()

    def read(self) -> pa.Table:
        """All records, in the columns of `RECORD_SCHEMA`; see `BatchRecords`."""
        try:
            batches = list(worker_reader(self.kafka, self.topic).read(self.ranges))
        except ReadError as error:
            raise error.failure.as_error() from error
        return pa.Table.from_batches(batches, RECORD_SCHEMA)


@dataclass(frozen=True, slots=True)
class ReadingTask:
    """Reads ranges and processes records; Spark maps it over the numbers of the tasks (`mapInArrow`).

    Attributes:
        shares: the ranges of each task, by its number.
    """

    kafka: KafkaAccess
    topic: str
    shares: Sequence[Sequence[PartitionRange]]
    task: RecordTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the results of the tasks whose numbers are in the column `id` (int64)."""
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from self._results(self.shares[number])

    def reports(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """Yield the values of the column `report` (binary) of the tasks with some numbers."""
        for number in numbers:
            for batch in self._results(self.shares[number]):
                yield from batch.column("report").to_pylist()

    def _results(self, ranges: Sequence[PartitionRange]) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.task(worker_reader(self.kafka, self.topic).read(ranges))
        except ReadError as error:
            yield self.task.failed(error.failure)


def worker_reader(kafka: KafkaAccess, topic: str) -> RangeReader:
    """The reader of this process for a topic."""
    if (kafka, topic) not in _readers:
        _readers[kafka, topic] = RangeReader(kafka, topic)
    return _readers[kafka, topic]


@dataclass(slots=True)
class _Share:
    ranges: list[PartitionRange] = field(default_factory=list)
    offsets: int = 0


def shared_out(ranges: Iterable[PartitionRange], tasks: int) -> list[list[PartitionRange]]:
    """Share ranges out to at most `tasks` tasks, so that the largest share is small: each to the least loaded task."""
    shares = [_Share() for _ in range(tasks)]
    for each in sorted(ranges, key=lambda each: (-each.offsets, each.partition)):
        least = min(shares, key=lambda share: share.offsets)
        least.ranges.append(each)
        least.offsets += each.offsets
    return [share.ranges for share in shares if share.ranges]


def require_read(failures: Iterable[ReadFailure | None]) -> None:
    """Check that all tasks of a batch have read their ranges.

    Raises:
        GamelakeError: the first failure, as an error.
    """
    for failure in failures:
        if failure is not None:
            raise failure.as_error()
