"""Brings the table of players' states up to date: each share writes its buckets anew, the driver commits them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.serving.live_ops.hour import PURCHASES_SCHEMA
from gamelake.serving.live_ops.memory import Share
from gamelake.serving.live_ops.plan import BUCKETS, Base, StatePlan
from gamelake.serving.live_ops.player_table import PLAYER_STATE, PlayerStateTable, write_bucket
from gamelake.serving.live_ops.state_files import file_prefix, read_table, write_table
from gamelake.storage.commits import CommitConflictError, commit_with_retry
from gamelake.storage.data_files import DataFile
from gamelake.storage.store import Location, Store

_ATTEMPTS = 20
_FEW_PLAYERS = 100_000
_ROWS_OF_A_CHANGE = 10
_MOST_INTERVALS = 10
_REPORT_TYPES = "report binary"


def intervals_to_wait(players: int, changed: int) -> int:
    """How many intervals lie between two refreshes of the table.

    A refresh writes all players. So that it costs by those that change, a large table waits for a tenth of its players:
    each change then pays for ten rows at most. The wait has an end, since the table is to be of the last minutes.

    Args:
        players: in the table.
        changed: states that batches have changed since the last refresh, a player once for each batch.
    """
    return 1 if changed * _ROWS_OF_A_CHANGE >= players - _FEW_PLAYERS else _MOST_INTERVALS


class BucketsWritten(msgspec.Struct, frozen=True, kw_only=True):
    """What a task wrote: files of the table, and a segment of purchases."""

    files: tuple[DataFile, ...]
    segment: str


@dataclass(frozen=True, slots=True)
class RefreshTask:
    """The function that Spark maps over the numbers of the shares (`mapInArrow`)."""

    plan: StatePlan
    lakehouse: Location

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the states of each share as they are after the last batch; yield an encoded report for each."""
        for batch in batches:
            for number in batch.column("id").to_pylist():
                report = msgspec.msgpack.encode(self._write(number))
                yield pa.RecordBatch.from_arrays([pa.array([report], pa.binary())], names=["report"])

    def _write(self, number: int) -> BucketsWritten:
        store = Store(self.lakehouse)
        share = Share(self.plan, number, store)
        memory = share.memory()
        states = memory.players.all()
        keys = states["key"].to_numpy()
        erased = np.isin(keys, np.frombuffer(self.plan.erased, np.uint64))
        states = states.filter(pa.array(~erased & ~states["erased"].to_numpy()))
        buckets = (states["key"].to_numpy() % np.uint64(BUCKETS)).astype(np.int64)
        files = tuple(
            write_bucket(store, int(bucket), states.filter(pa.array(buckets == bucket)))
            for bucket in np.unique(buckets)
        )
        unsaved = pa.concat_tables([PURCHASES_SCHEMA.empty_table(), *(rows for _, rows in memory.unsaved)])
        kept = unsaved.filter(pc.greater(unsaved["kept_until"], self.plan.moment))
        prefix = file_prefix(self.plan.folder, self.plan.batch_id, "segment", share.label)
        return BucketsWritten(files=files, segment=write_table(store, prefix, kept))


@dataclass(frozen=True, slots=True)
class Refresher:
    """Refreshes the table."""

    spark: SparkSession
    store: Store
    table: PlayerStateTable
    failpoints: Failpoints

    def refresh(self, plan: Callable[[], StatePlan], shares: tuple[str, ...]) -> tuple[Base, Sequence[tuple[int, str]]]:
        """Commit the state after the plan's batch; gives the new base and its files. `shares` are the batch's files.

        Raises:
            TransientError: other writers committed first at every attempt.
        """

        def attempt() -> tuple[Base, Sequence[tuple[int, str]]]:
            # The new plan knows whose rows other writers have erased meanwhile.
            now = plan()
            written = self._write(now)
            self.failpoints.reach(Failpoint.AFTER_FILES)
            files = [file for each in written for file in each.files]
            base = Base(
                stream=now.folder,
                batch_id=now.batch_id,
                moment=now.moment,
                shares=shares,
                segments=(*self._still_wanted(now), *(each.segment for each in written)),
                players=sum(file.rows for file in files),
            )
            if not self.table.replace(files, base):
                self._discard(written)
                raise CommitConflictError
            self.failpoints.reach(Failpoint.AFTER_TABLE_COMMIT)
            return self.table.base()

        return commit_with_retry(PLAYER_STATE, _ATTEMPTS, attempt)

    def _write(self, plan: StatePlan) -> list[BucketsWritten]:
        task = RefreshTask(plan, self.store.location)
        rows = self.spark.range(0, plan.shares, 1, plan.shares).mapInArrow(task, _REPORT_TYPES).collect()
        return [msgspec.msgpack.decode(bytes(row.report), type=BucketsWritten) for row in rows]

    def _still_wanted(self, plan: StatePlan) -> list[str]:
        """Segments that have a purchase which still matters."""
        return [path for path in plan.base.segments if self._newest(path) > plan.moment]

    def _newest(self, path: str) -> int:
        newest = pc.max(read_table(self.store, path)["kept_until"]).as_py()
        return 0 if newest is None else int(newest)

    def _discard(self, written: Sequence[BucketsWritten]) -> None:
        self.store.delete_all(each.segment for each in written)
        self.store.delete_all(f"{PLAYER_STATE}/{file.path}" for each in written for file in each.files)
