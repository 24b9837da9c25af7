"""Topics in memory, and the tasks that read them: what a stream needs of Kafka and Spark, in this process."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Self

import pyarrow as pa

from gamelake.layers.bronze import RECORD_SCHEMA
from gamelake.streaming.kafka.batch_records import RecordTask, results_of, shared_out
from gamelake.streaming.kafka.consumers import PartitionRange
from gamelake.streaming.kafka.source import PlannedOffsets
from tests.unit.histories.events import ARRIVAL
from tests.unit.streaming.tasks import KafkaTaskRecord, as_batch


@dataclass
class Topic:
    """A topic of two partitions, which keeps all records."""

    name: str
    partitions: tuple[list[KafkaTaskRecord], ...] = field(default_factory=lambda: ([], []))

    def id(self) -> str:
        """The topic is never made again."""
        return f"id of {self.name}"

    def add(self, partition: int, value: bytes, key: bytes | None = None) -> None:
        """Append a record; each arrives a millisecond after the one before it."""
        records = self.partitions[partition]
        arrival = ARRIVAL + timedelta(milliseconds=sum(map(len, self.partitions)))
        records.append(
            KafkaTaskRecord(value=value, partition=partition, offset=len(records), timestamp=arrival, key=key)
        )

    def ends(self) -> dict[int, int]:
        """The next offset of each partition."""
        return {number: len(records) for number, records in enumerate(self.partitions)}

    def batch(self, planning: object, planned: PlannedOffsets) -> "TopicRecords":
        del planning
        return TopicRecords(self, planned.ranges)


@dataclass(frozen=True, slots=True)
class TopicRecords:
    """The records of offset ranges, as `BatchRecords`; tasks run one after the other in this process."""

    topic: Topic
    ranges: Sequence[PartitionRange]

    @property
    def spark(self) -> "TasksHere":
        return TasksHere()

    def reports(self, task: RecordTask, tasks: int) -> list[bytes]:
        shares = shared_out(self.ranges, tasks) or [[]]
        results = (batch for share in shares for batch in results_of(task, self._batches(share)))
        return [report for batch in results for report in batch.column("report").to_pylist()]

    def part(self, ranges: Sequence[PartitionRange]) -> Self:
        return replace(self, ranges=ranges)

    def read(self) -> pa.Table:
        return pa.Table.from_batches(self._batches(self.ranges), RECORD_SCHEMA)

    def _batches(self, ranges: Iterable[PartitionRange]) -> Iterator[pa.RecordBatch]:
        for each in ranges:
            yield as_batch(self.topic.partitions[each.partition][each.start : each.end])


class TasksHere:
    """What the driver of files needs of a session of Spark: it maps a function over partitions of values."""

    @property
    def sparkContext(self) -> Self:  # noqa: N802 # Spark's name
        return self

    def parallelize(self, values: Iterable[Any], slices: int) -> "_Values":
        """Values to run a task on, each in a partition of its own."""
        del slices
        return _Values(tuple(values))


@dataclass(frozen=True, slots=True)
class _Values:
    values: tuple[Any, ...]

    def mapPartitions(self, task: Callable[[Iterator[Any]], Iterable[Any]]) -> Self:  # noqa: N802 # Spark's name
        return replace(self, values=tuple(result for value in self.values for result in task(iter([value]))))

    def collect(self) -> list[Any]:
        return list(self.values)
