"""What a batch should read, what its tasks did read, and whether the two are the same."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gamelake.errors import CheckpointError, OffsetGapError
from gamelake.lake.manifest import BatchManifest, OffsetRange


@dataclass(frozen=True, slots=True)
class PlannedOffsets:
    """The next offset of each partition before and after a batch; a partition new to the stream is not in `before`."""

    before: Mapping[int, int]
    after: Mapping[int, int]

    @property
    def records(self) -> int:
        """How many records the batch will read, at most."""
        return sum(max(end - self.before.get(partition, 0), 0) for partition, end in self.after.items())


def taken_offsets(planned: PlannedOffsets, read: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """The ranges that a batch took, from the plan, with the records that were really there.

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
                f"partition {partition}: read offsets {found.first} to {found.last}, planned were {start} to {end - 1}"
            )
        if start < end:
            records = found.records if found else 0
            ranges.append(OffsetRange(partition=partition, first=start, last=end - 1, records=records))
    if by_partition:
        raise OffsetGapError(f"records of partitions {sorted(by_partition)} came, which the batch did not plan to read")
    return tuple(ranges)


def check_same_offsets(manifest: BatchManifest, after: Mapping[int, int]) -> None:
    """A decided batch must end where the checkpoint says it ends.

    Raises:
        CheckpointError: it does not: the checkpoint is an old copy or another stream's.
    """
    for taken in manifest.offsets:
        if after.get(taken.partition) != taken.last + 1:
            raise CheckpointError(
                f"batch {manifest.batch_id} took partition {taken.partition} up to offset {taken.last}, but by the "
                f"checkpoint up to {after.get(taken.partition, 0) - 1}: it is an old copy. "
                "Rebuild it from the manifests with jobs/rebuild_checkpoint.py"
            )
