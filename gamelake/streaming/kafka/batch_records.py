"""The records of a batch: which task reads which offset ranges, and how a task reports that it can't."""

import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from gamelake.kafka import KafkaAccess
from gamelake.layers.bronze import RECORD_SCHEMA
from gamelake.model.worker_cache import per_worker
from gamelake.streaming.kafka.consumers import PartitionRange
from gamelake.streaming.kafka.reader import FailureKind, RangeReader, ReadError, TaskFailure
from gamelake.streaming.outages import OUTAGES


class RecordTask(Protocol):
    """The work of a task on its records; pickled into the job.

    `results_of` calls it once for each task, on one thread, and consumes the results to the end. If the records can't
    be read, or their content makes it fail, `results_of` calls `failed` after that. Any other outage is raised instead,
    and Spark runs the task again.
    """

    def __call__(self, batches: Iterator[pa.RecordBatch], /) -> Iterator[pa.RecordBatch]:
        """Process records, and yield the results.

        Args:
            batches: in the columns of `RECORD_SCHEMA`, in the order of offsets within each partition.

        Yields:
            Rows in the columns of the results.

        Raises:
            Exception: the records can't be processed, or the store does not respond.
        """

    def failed(self, failure: TaskFailure, /) -> pa.RecordBatch:
        """Return rows that report a failure, in the columns of the results.

        The caller must ignore the rows that were yielded before.
        """


class BatchRecords(Protocol):
    """The records of one batch, or of a part of it.

    The methods may be called in any order and repeatedly: each call reads the records from Kafka again. They are called
    on the thread of the batch. If the records can't be read, or their content makes a task fail, the results have a
    `TaskFailure`. Any other outage is raised as an error of the job.
    """

    @property
    def spark(self) -> SparkSession:
        """The session of the query."""

    def process(self, task: RecordTask, row_types: str, tasks: int) -> DataFrame:
        """Plan at most `tasks` tasks that read the records; each partition is read by one task.

        Args:
            task: processes the records of a Spark task.
            row_types: the columns of the results, as a Spark schema.
            tasks: the largest number of tasks.

        Returns:
            The results, as a DataFrame that runs the tasks when it is read.
        """

    def reports(self, task: RecordTask, tasks: int) -> list[bytes]:
        """Run at most `tasks` tasks that read the records; each partition is read by one task.

        Args:
            task: processes the records of a Spark task; its results have the column `report` (binary).
            tasks: the largest number of tasks.

        Returns:
            The values of the column `report`, in the order of tasks.

        Raises:
            Exception: a task fails in each of its attempts.
        """

    def part(self, ranges: Sequence[PartitionRange]) -> "BatchRecords":
        """Return the records of some of the offsets; a task that is killed on them counts as a failure of content.

        Args:
            ranges: one for each partition.
        """

    def read(self) -> pa.Table:
        """Read all records in the driver.

        Returns:
            The columns of `RECORD_SCHEMA`, in the order of offsets within each partition.

        Raises:
            GamelakeError: Kafka has deleted the records, does not respond, or denies access.
        """


@dataclass(frozen=True, slots=True)
class KafkaRecords:
    """The records of offset ranges of a topic.

    Attributes:
        spark: the session of the query.
        kafka: how to connect.
        topic: the name of the topic.
        ranges: one for each partition.
        is_tried_once: True if a second attempt of a task reports that the first one was killed, and reads nothing.
    """

    spark: SparkSession
    kafka: KafkaAccess
    topic: str
    ranges: Sequence[PartitionRange]
    is_tried_once: bool = False

    def process(self, task: RecordTask, row_types: str, tasks: int) -> DataFrame:
        """See `BatchRecords`."""
        shares = shared_out(self.ranges, tasks) or [[]]
        numbers = self.spark.range(0, len(shares), 1, len(shares))
        reading = ReadingTask(self.kafka, self.topic, shares, task, self.is_tried_once)
        return numbers.mapInArrow(reading, row_types)

    def reports(self, task: RecordTask, tasks: int) -> list[bytes]:
        """See `BatchRecords`.

        This uses an RDD: Spark plans it 20 ms faster than a DataFrame, whose tasks also need separate Python workers.
        """
        shares = shared_out(self.ranges, tasks) or [[]]
        numbers = self.spark.sparkContext.parallelize(range(len(shares)), len(shares))
        reading = ReadingTask(self.kafka, self.topic, shares, task, self.is_tried_once)
        return numbers.mapPartitions(reading.reports).collect()

    def part(self, ranges: Sequence[PartitionRange]) -> "KafkaRecords":
        """See `BatchRecords`."""
        return replace(self, ranges=ranges, is_tried_once=True)

    def read(self) -> pa.Table:
        """Read all records in the columns of `RECORD_SCHEMA`; see `BatchRecords`."""
        try:
            batches = list(worker_reader(self.kafka, self.topic).read(self.ranges))
        except ReadError as error:
            raise error.failure.as_error() from error
        return pa.Table.from_batches(batches, RECORD_SCHEMA)


@dataclass(frozen=True, slots=True)
class ReadingTask:
    """Reads ranges and processes records; Spark maps it over the numbers of the tasks.

    Attributes:
        kafka: how to connect.
        topic: the name of the topic.
        shares: the ranges of each task, by its number.
        task: processes the records.
        is_tried_once: True if a second attempt reports that the first one was killed, and reads nothing.
    """

    kafka: KafkaAccess
    topic: str
    shares: Sequence[Sequence[PartitionRange]]
    task: RecordTask
    is_tried_once: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the results of the tasks whose numbers are in the column `id` (int64), in order (`mapInArrow`)."""
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from self._results(self.shares[number])

    def reports(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """Yield the column `report` (binary) of the tasks with some numbers, in order (`mapPartitions`)."""
        for number in numbers:
            for batch in self._results(self.shares[number]):
                yield from batch.column("report").to_pylist()

    def _results(self, ranges: Sequence[PartitionRange]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if self.is_tried_once and context is not None and context.attemptNumber():
            failure = TaskFailure(kind=FailureKind.CONTENT, detail="the process that read it was killed")
            return iter([self.task.failed(failure)])
        return results_of(self.task, worker_reader(self.kafka, self.topic).read(ranges))


def results_of(task: RecordTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the results of a task; if the content of its records makes it fail, yield the report of the failure.

    Args:
        task: the task.
        batches: its records, in the columns of `RECORD_SCHEMA`.

    Yields:
        Rows in the columns of the results. A report of a failure comes last, and the rows before it do not count.

    Raises:
        Exception: an outage ends the task; Spark runs it again.
    """
    try:
        yield from task(batches)
    except ReadError as error:
        yield task.failed(error.failure)
    except OUTAGES:
        raise
    except Exception as error:
        yield task.failed(TaskFailure(kind=FailureKind.CONTENT, detail=kind_and_place(error)))


def kind_and_place(error: BaseException) -> str:
    """Name the type and the place of an error, without its text, which may quote a record."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [each for each in frames if "gamelake" in Path(each.filename).parts] or frames
    place = f" in {ours[-1].name} ({Path(ours[-1].filename).name}, line {ours[-1].lineno})" if ours else ""
    return f"{type(error).__name__}{place}"


def worker_reader(kafka: KafkaAccess, topic: str) -> RangeReader:
    """Return the reader of this process for a topic; it stays connected from batch to batch."""
    return per_worker(RangeReader, (kafka, topic), lambda: RangeReader(kafka, topic))


@dataclass(slots=True)
class _Share:
    ranges: list[PartitionRange] = field(default_factory=list)
    offsets: int = 0


def shared_out(ranges: Iterable[PartitionRange], tasks: int) -> list[list[PartitionRange]]:
    """Divide ranges between at most `tasks` tasks, the largest first, each to the least loaded task.

    Returns:
        The ranges of each task; no task has an empty list.
    """
    shares = [_Share() for _ in range(tasks)]
    for each in sorted(ranges, key=lambda each: (-each.offsets, each.partition)):
        least = min(shares, key=lambda share: share.offsets)
        least.ranges.append(each)
        least.offsets += each.offsets
    return [share.ranges for share in shares if share.ranges]


def require_read(failures: Iterable[TaskFailure | None]) -> None:
    """Check that all tasks of a batch have read their ranges.

    Raises:
        GamelakeError: the first failure, as an error.
    """
    for failure in failures:
        if failure is not None:
            raise failure.as_error()
