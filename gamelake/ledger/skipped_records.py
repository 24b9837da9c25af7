"""Records that a stream writes to the dead letters undecoded, because tasks fail on them or an operator requests it.

The driver reads these requests when it starts and when a batch fails. A request is kept until its batch is decided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from gamelake.objects.records import Records
from gamelake.objects.store import Store


class SkippedRecords(msgspec.Struct, frozen=True, kw_only=True):
    """A range of records to skip in one Kafka partition.

    Attributes:
        topic_id: Kafka's id of the topic, since a topic that is created again has other records at these offsets.
        partition: the Kafka partition.
        first: the first offset.
        last: the last offset; it is skipped too.
        problem: the reason, for the detail of the dead letters; it never contains content of the records.
    """

    topic_id: str
    partition: int
    first: int
    last: int
    problem: str

    def has(self, partition: int, offset: int) -> bool:
        """Return True if a record is in the range; the topic is not checked."""
        return partition == self.partition and self.first <= offset <= self.last


def parted(
    batch: pa.RecordBatch, skipped: Sequence[SkippedRecords]
) -> tuple[pa.RecordBatch, list[tuple[pa.RecordBatch, SkippedRecords]]]:
    """Split a batch into the records to process and those to skip.

    Args:
        batch: the columns of `gamelake.layers.bronze.RECORD_SCHEMA`, of which `partition` and `offset` are read.
        skipped: the ranges to skip.

    Returns:
        The records to process, and for each range that the batch has, in the order of `skipped`, its records. All
        batches have the columns of `batch`, and their rows keep its order.
    """
    left_out = []
    for each in skipped:
        offsets = batch.column("offset").to_numpy()
        here = batch.column("partition").to_numpy() == each.partition
        here &= (offsets >= each.first) & (offsets <= each.last)
        if here.any():
            left_out.append((batch.filter(pa.array(here)), each))
            batch = batch.filter(pa.array(~here))
    return batch, left_out


@dataclass(frozen=True, slots=True)
class SkippedRecordsOfStream:
    """The records that a stream skips.

    Attributes:
        store: the lakehouse.
        stream: the stream's name.
    """

    store: Store
    stream: str

    def all(self, topic_id: str) -> tuple[SkippedRecords, ...]:
        """Return the ranges of a topic, in the order of partitions and offsets."""
        return tuple(each for each in self._records.all() if each.topic_id == topic_id)

    def add(self, skipped: SkippedRecords) -> None:
        """Record a range to skip; the driver reads it at its next start, or when a batch fails."""
        self._records.put(_name(skipped), skipped)

    def forget(self, positions: Mapping[int, int]) -> None:
        """Delete the ranges whose records are all decided.

        Args:
            positions: the next undecided offset by partition.
        """
        for each in self._records.all():
            if each.last < positions.get(each.partition, 0):
                self._records.delete(_name(each))

    @property
    def _records(self) -> Records[SkippedRecords]:
        return Records(self.store, f"_gamelake/streams/{self.stream}/skipped", SkippedRecords)


def _name(skipped: SkippedRecords) -> str:
    return f"{skipped.partition:05d}-{skipped.first:020d}-{skipped.last:020d}"
