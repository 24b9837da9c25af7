"""Who decides a stream's batches, and who remembers what the next one needs: another stream may bring its own."""

from typing import Protocol, TypeVar

from pyspark.sql import DataFrame

from gamelake.fanout.decision import Decision
from gamelake.fanout.offsets import PlannedOffsets
from gamelake.lake.manifest import BatchManifest

Plan_co = TypeVar("Plan_co", covariant=True)
Plan_contra = TypeVar("Plan_contra", contravariant=True)


class Deciding(Protocol[Plan_contra]):
    """Decides batches."""

    def decide(self, records: DataFrame, planned: PlannedOffsets, plan: Plan_contra | None, /) -> Decision:
        """Read and write all records of a batch; commit nothing."""


class Remembering(Protocol[Plan_co]):
    """What a stream remembers from batch to batch."""

    def plan(self, seed: str, batch_id: int, /) -> Plan_co:
        """What the tasks of a batch need to know of it."""

    def took(self, manifest: BatchManifest, /) -> None:
        """Every table has the batch."""
