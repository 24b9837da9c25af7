"""The parts that the driver of a stream works with: those that decide batches, and the memory of the stream."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa

from gamelake.ledger.manifests import BatchManifest, EventsFile
from gamelake.ledger.skipped_records import SkippedRecords
from gamelake.streaming.driver.decision import Decision
from gamelake.streaming.kafka.batch_records import BatchRecords
from gamelake.streaming.kafka.source import PlannedOffsets

Plan_co = TypeVar("Plan_co", covariant=True)
Plan_contra = TypeVar("Plan_contra", contravariant=True)


class BatchDecider(Protocol[Plan_contra]):
    """Decides what a batch writes to which table.

    `FanOut` calls `decide` for one batch at a time, on the thread of the batch. It calls `decide` again for the same
    batch if another stream was faster, or if another writer has widened a table and `learn` returns True. Files of an
    earlier decision stay on the store without a reference. An error of either method ends the query, and nothing is
    committed.
    """

    def decide(self, records: BatchRecords, planned: PlannedOffsets, plan: Plan_contra | None, /) -> Decision:
        """Read all records of a batch and write their files; commit nothing.

        Args:
            records: of the batch.
            planned: the offsets that the batch must read.
            plan: of the stream's memory for this batch; None if the stream has no memory.

        Raises:
            Exception: the batch can't be decided; Spark or the operator runs it again.
        """

    def learn(self, columns: Mapping[str, pa.Schema], /) -> bool:
        """Replace the known columns of tables that other writers have widened.

        Args:
            columns: all columns of each of these tables, by table name.

        Returns:
            False if another decision would have the same columns. Then the commits hold these tables back.
        """


class SkippingDecider(BatchDecider[Plan_contra], Protocol[Plan_contra]):
    """Decides batches, and can leave out records that make tasks fail.

    `PoisonAvoidingDecider` calls `skip` at its start and after each failure, and `decide` for each attempt. After two
    failures of a batch it calls `skip` and `try_part` for each part that it tries, then `skip` with all found records,
    and then `decide_with_less_memory`. After the start all calls come from the thread of the batch. A `GamelakeError`
    that is not a `RecordsError` means an outage or a wrong setting; any other error may be the fault of the records.
    """

    def decide_with_less_memory(
        self, records: BatchRecords, planned: PlannedOffsets, plan: Plan_contra | None, /
    ) -> Decision:
        """Decide in one task that keeps few records in memory at a time."""

    def try_part(self, records: BatchRecords, plan: Plan_contra | None, /) -> None:
        """Process a part of a batch in one task, as `decide` would, and discard the results.

        Raises:
            Exception: the task fails or is killed.
        """

    def skip(self, skipped: Sequence[SkippedRecords], /) -> None:
        """Write these records, and no others, to the dead letters undecoded from now on."""


class StreamMemory(Protocol[Plan_co]):
    """State that a stream keeps from batch to batch, such as its deduplication window.

    For a new batch `FanOut` calls `plan`, `merged` and `left_out` once each, in this order, and `took` after the
    commits. For a batch that an earlier attempt decided, it calls only `took`. All calls come from the thread of the
    batch. An error ends the query; the next start reads the state from the manifests.
    """

    @property
    def left_out(self) -> int:
        """The number of events that the last plan leaves out because the state has more than its limit."""

    def plan(self, seed: str, batch_id: int, /) -> Plan_co:
        """Return the part of the state that the tasks of a batch need.

        Args:
            seed: of the stream's identities: the id of its query.
            batch_id: of the batch.
        """

    def merged(self, batch_id: int, /) -> tuple[EventsFile, ...]:
        """Write files that replace earlier files of the state, and return them; they count once a manifest names them.

        Args:
            batch_id: of the batch whose manifest will name the files.
        """

    def took(self, manifest: BatchManifest, /) -> None:
        """Add the events of a batch to the state; every table has the batch, or holds it back."""


class NoMemory:
    """The memory of a stream that keeps no state: its tasks find no duplicates."""

    left_out = 0

    def plan(self, seed: str, batch_id: int, /) -> None:
        """Return no plan."""

    def merged(self, batch_id: int, /) -> tuple[EventsFile, ...]:
        """Return no files."""
        del batch_id
        return ()

    def took(self, manifest: BatchManifest, /) -> None:
        """Do nothing."""
