"""Finds batches with more records only in bronze than their manifests explain; tasks count records by batch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from gamelake.ledger.coordinates import CoordinateRange
from gamelake.model.arrays import Ints

BATCH, RECORDS, PARTITION, OFFSET = "batch", "records", "partition", "offset"
COUNTED_DDL = f"{BATCH} bigint, {RECORDS} bigint, {PARTITION} bigint, {OFFSET} bigint"
_NAMED = 3
_NO_BATCH = -1


@dataclass(frozen=True, slots=True)
class BatchCoordinates:
    """The coordinates of a batch, and how many of its records are only in bronze: duplicates and dropped rows."""

    ranges: tuple[CoordinateRange, ...]
    in_bronze_alone: int


@dataclass(frozen=True, slots=True)
class RecordsOfBatch:
    """The number of a batch's records that are only in bronze, and the partition and offset of one of them."""

    count: int
    example: tuple[int, int]


@dataclass(frozen=True, slots=True)
class UnexplainedRecords:
    """Records without an outcome: their number, and one of each of the first batches that lost some."""

    count: int
    examples: tuple[tuple[int, int], ...]


def find_unexplained(lost: Mapping[int, RecordsOfBatch], batches: Sequence[BatchCoordinates]) -> UnexplainedRecords:
    """Compare the records that are only in bronze with the duplicates and dropped rows of their batches' manifests.

    Args:
        lost: by the index of their batch in `batches`.
        batches: the batches that read them.
    """
    too_many = {index: of_batch.count - batches[index].in_bronze_alone for index, of_batch in lost.items()}
    examples = sorted(lost[index].example for index, count in too_many.items() if count > 0)
    return UnexplainedRecords(sum(count for count in too_many.values() if count > 0), tuple(examples[:_NAMED]))


@dataclass(frozen=True, slots=True)
class _Ranges:
    """The ranges of one partition, sorted: first and last offsets, and the indices of their batches (int64)."""

    firsts: Ints
    lasts: Ints
    batches: Ints

    def batches_of(self, offsets: Ints) -> Ints:
        """The index of each offset's batch, or -1."""
        at = np.searchsorted(self.firsts, offsets, side="right") - 1
        is_in = (at >= 0) & (offsets <= self.lasts[at])
        return np.where(is_in, self.batches[at], _NO_BATCH)


@dataclass(frozen=True, slots=True)
class CountByBatch:
    """The function of a task: counts records by batch; pickled into the job."""

    ranges: Mapping[tuple[str, int], _Ranges]

    @classmethod
    def of(cls, batches: Sequence[BatchCoordinates]) -> Self:
        """Sort the ranges of batches."""
        found: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        for index, batch in enumerate(batches):
            for part in batch.ranges:
                found.setdefault((part.topic, part.partition), []).append((part.first, part.last, index))
        return cls({key: _Ranges(*np.array(sorted(parts), np.int64).T) for key, parts in found.items()})

    def __call__(self, records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Count the records of each batch; records without a batch count as explained.

        Args:
            records: columns topic, partition and offset.

        Yields:
            A row for each batch and partition: its index, the number of its records, partition and offset of one.
        """
        for part in records:
            for key, offsets in _by_partition(part):
                if ranges := self.ranges.get(key):
                    yield _counted(key[1], offsets, ranges.batches_of(offsets))


def _by_partition(records: pa.RecordBatch) -> Iterator[tuple[tuple[str, int], Ints]]:
    """The topics and partitions of records, and the offsets of each."""
    grouped = pa.Table.from_batches([records]).group_by(["topic", "partition"], use_threads=False)
    for row in grouped.aggregate([("offset", "list")]).to_batches():
        offsets = row.column("offset_list")
        keys = zip(row.column("topic").to_pylist(), row.column("partition").to_pylist(), strict=True)
        for at, key in enumerate(keys):
            yield key, offsets[at].values.to_numpy()


def _counted(partition: int, offsets: Ints, batches: Ints) -> pa.RecordBatch:
    found, first, counts = np.unique(batches, return_index=True, return_counts=True)
    has_batch = found != _NO_BATCH
    columns = {
        BATCH: found[has_batch],
        RECORDS: counts[has_batch],
        PARTITION: np.full(int(has_batch.sum()), partition, np.int64),
        OFFSET: offsets[first[has_batch]],
    }
    return pa.RecordBatch.from_pydict({name: pa.array(values, pa.int64()) for name, values in columns.items()})
