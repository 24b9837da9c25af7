"""Refreshes the table of players' states: each task rewrites the buckets of its share, and the driver commits them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from gamelake.delta.commits import CommitConflictError, commit_with_retry
from gamelake.delta.data_files import DataFile
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.objects.store import Location, Store
from gamelake.serving.live_ops.plan import BUCKETS, Base, StatePlan
from gamelake.serving.live_ops.states.hour import PURCHASES_SCHEMA
from gamelake.serving.live_ops.states.memory import Share
from gamelake.serving.live_ops.states.player_table import PLAYER_STATE, PlayerStateTable, write_bucket
from gamelake.serving.live_ops.states.state_files import file_prefix, read_table, write_table

_ATTEMPTS = 20
_FEW_PLAYERS = 100_000
_ROWS_OF_A_CHANGE = 10
_MOST_INTERVALS = 10
_REPORT_TYPES = "report binary"


def intervals_to_wait(players: int, changed: int) -> int:
    """Return the number of intervals between two refreshes of the table.

    A refresh writes all players. So that its cost depends on the changes, a large table waits until a tenth of its
    players have changed: a refresh then writes at most ten rows per change. The wait is bounded to keep the table
    current.

    Args:
        players: the number of players in the table.
        changed: the number of changed states since the last refresh; a player counts once for each batch.
    """
    return 1 if changed * _ROWS_OF_A_CHANGE >= players - _FEW_PLAYERS else _MOST_INTERVALS


class BucketsWritten(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a task wrote.

    Attributes:
        files: the table's files; no commit names them yet.
        segment: the path of the file with the share's new purchases.
    """

    files: tuple[DataFile, ...]
    segment: str


@dataclass(frozen=True, slots=True)
class RefreshTask:
    """The function that Spark maps over the numbers of the shares (`mapInArrow`).

    Attributes:
        plan: the state to write.
        lakehouse: the lakehouse.
    """

    plan: StatePlan
    lakehouse: Location

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the states of each share after the last batch.

        Args:
            batches: the shares' numbers in the column `id` (int64).

        Yields:
            One row for each share: `report` (binary), an encoded `BucketsWritten`.
        """
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
    """Refreshes the table of players' states.

    Attributes:
        spark: the session that runs the tasks.
        store: the lakehouse.
        table: the table.
        failpoints: where a test ends the process.
    """

    spark: SparkSession
    store: Store
    table: PlayerStateTable
    failpoints: Failpoints

    def refresh(self, plan: Callable[[], StatePlan], shares: tuple[str, ...]) -> tuple[Base, Sequence[tuple[int, str]]]:
        """Write and commit the state after the plan's batch.

        Args:
            plan: returns the state to write; it is called for each attempt, since other writers may erase players.
            shares: the files of changes of the plan's batch.

        Returns:
            The new base, and the table's files, each with its bucket.

        Raises:
            TransientError: other writers committed first at every attempt.
        """

        def attempt() -> tuple[Base, Sequence[tuple[int, str]]]:
            # A new plan has the players whose rows other writers have erased meanwhile.
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
        """Return the segments with a purchase that is still needed."""
        return [path for path in plan.base.segments if self._newest(path) > plan.moment]

    def _newest(self, path: str) -> int:
        newest = pc.max(read_table(self.store, path)["kept_until"]).as_py()
        return 0 if newest is None else int(newest)

    def _discard(self, written: Sequence[BucketsWritten]) -> None:
        self.store.delete_all(each.segment for each in written)
        self.store.delete_all(f"{PLAYER_STATE}/{file.path}" for each in written for file in each.files)
