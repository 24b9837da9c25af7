"""The fan-out into game tables alone: as the platform reads, decodes, checks and deduplicates; without other tables.

The platform has no such mode, since replays need bronze. Here a topic gives the platform's own batch function records
that run another task than it asks for.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from gamelake.schemas.decoder import Decoded
from gamelake.streaming.kafka.batch_records import BatchRecords, KafkaRecords, RecordTask
from gamelake.streaming.kafka.source import PlannedOffsets, SourceTopic
from gamelake.streaming.plan import encode_report
from gamelake.streaming.tasks.chunk import TableDay
from gamelake.streaming.tasks.sorting import RecordCoordinates
from gamelake.streaming.tasks.task import Chunk, FanOutTask, duplicate_filter, kafka_microseconds, offset_ranges


class GameTablesChunk(Chunk):
    """A chunk whose rows are those of game tables; a record without a row is in no table."""

    def _add(self, batch: pa.RecordBatch, decoded: Decoded) -> None:
        self.records += len(batch)
        self._bytes += batch.column("value").nbytes
        self._decoded_bytes += sum(group.columns.nbytes for group in decoded.groups)
        self._offsets.extend(offset_ranges(batch))
        partitions = batch.column("partition").cast(pa.int64())
        placement = RecordCoordinates(partitions, batch.column("offset"), kafka_microseconds(batch))
        for group in decoded.groups:
            for run in self._sorter.sort(group, placement, decoded.rejects):
                self._writer.add(TableDay(run.table, run.day), run.rows, run.schema_id)


@dataclass(frozen=True, slots=True)
class GameTablesTask(FanOutTask):
    """The fan-out's task with chunks of game tables alone."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode, sort and write all records; yield one row with a report (binary) per chunk."""
        chunk = GameTablesChunk(self.plan, duplicate_filter(self.plan))
        for batch in batches:
            yield from map(encode_report, chunk.take(batch))
        if chunk.records:
            yield encode_report(chunk.flush())


class GameTablesRecords(KafkaRecords):
    """Return records of a batch whose tasks write game tables alone."""

    def reports(self, task: RecordTask, tasks: int) -> list[bytes]:
        """See `BatchRecords`."""
        return super().reports(GameTablesTask(task.plan) if isinstance(task, FanOutTask) else task, tasks)


class GameTablesTopic(SourceTopic):
    """A topic whose batches write game tables alone."""

    def batch(self, planning: DataFrame, planned: PlannedOffsets) -> BatchRecords:
        """The records of a batch; see `SourceTopic`."""
        return GameTablesRecords(planning.sparkSession, self._kafka, self._name, planned.ranges)
