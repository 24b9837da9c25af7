"""Commits decided batches to all their tables; a table that refuses a batch is held back, and all others go on."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

import msgspec

from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.held_tables import REFUSALS, HeldTable
from gamelake.storage.manifests import BatchManifest, TableFiles
from gamelake.storage.tables import DeltaTables
from gamelake.streaming.stream import Stream

log = event_logger(__name__)

# A table that is held back costs the reading of its log at each attempt.
_RETRY_SECONDS = 30.0
# So long a batch of all tables waits for one that catches up.
_CATCH_UP_SECONDS = 5.0


class BatchCommits:
    """The commits of one stream.

    The batches of a table are committed in their order: Delta takes a batch for committed if a later one of the same
    application is. So once a table has refused a batch, the later ones wait too, and it catches up from the first one.

    Args:
        stream: the stream.
        tables: of the lakehouse.
        failpoints: where tests kill the process.
        on_failure: called for each commit that failed for another reason, and the batch with it.
    """

    def __init__(
        self,
        stream: Stream,
        tables: DeltaTables,
        failpoints: Failpoints | None = None,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._stream = stream
        self._tables = tables
        self._failpoints = failpoints or Failpoints()
        self._on_failure = on_failure
        self._held: dict[str, HeldTable] = {}
        self._is_read = False
        self._retry_at = 0.0
        # Kept from batch to batch: starting 64 threads takes longer than the commits of a small batch.
        self._pool = ThreadPoolExecutor(tables.at_once, thread_name_prefix="commit")

    @property
    def held(self) -> Mapping[str, HeldTable]:
        """The tables that are held back."""
        return self._held

    def refresh(self) -> None:
        """Read which tables are held back: another process may have committed batches since the last one of this one.

        Each earlier batch is in all tables by then, or waits: that is written before the batch counts as done.
        """
        self._held = self._stream.held.all()
        self._is_read = True

    def commit(self, manifest: BatchManifest, catch_up_seconds: float = _CATCH_UP_SECONDS) -> None:
        """Commit a batch to its tables, several at a time; tables that have it already are skipped.

        Args:
            manifest: of the batch; this process has committed all batches since the last `refresh`.
            catch_up_seconds: how long each table that is held back may catch up at most, if that is due.

        Raises:
            GamelakeError: a commit failed for a reason that does not concern one table alone.
        """
        if not self._is_read:
            self.refresh()
        if self._held and time.monotonic() >= self._retry_at:
            self._retry_at = time.monotonic() + _RETRY_SECONDS
            for table in [*self._held]:
                self._catch_up(table, time.monotonic() + catch_up_seconds)

        # Once: it goes over all tables of the manifest.
        transaction = BatchTransaction.of(manifest)

        def commit_table(entry: TableFiles) -> None:
            if (held := self._held.get(entry.table)) is not None:
                self._hold(entry.table, manifest.batch_id, held.reason)
            else:
                self._append(entry, transaction)

        _wait_for([self._pool.submit(commit_table, entry) for entry in manifest.tables])

    def _append(self, entry: TableFiles, transaction: BatchTransaction) -> None:
        try:
            self._tables.append(entry, transaction)
        except REFUSALS as error:
            reason = str(error)
            self._hold(entry.table, transaction.version, reason)
            log.warning(
                "table_held_back",
                table=entry.table,
                batch=transaction.version,
                reason=reason,
                action="all other tables go on",
            )
        except Exception:
            self._on_failure()
            raise
        self._failpoints.reach(Failpoint.AFTER_TABLE_COMMIT)

    def _hold(self, table: str, batch_id: int, reason: str) -> None:
        # Before the batch counts as done: no later start would find what waits.
        self._stream.held.hold(table, batch_id, reason)
        former = self._held.get(table)
        self._held[table] = HeldTable(
            stream=self._stream.name,
            table=table,
            since=former.since if former else batch_id,
            batches=(former.batches if former else 0) + 1,
            reason=reason,
        )

    def _catch_up(self, table: str, deadline: float) -> None:
        """Commit the batches that wait, until the table refuses one, has all, or time is up."""
        committed = 0
        for waiting in self._stream.held.waiting(table):
            batch_id = waiting.manifest.batch_id
            if committed and time.monotonic() > deadline:
                self._retry_at = 0.0
                break
            try:
                self._tables.append(waiting.entry, BatchTransaction.of(waiting.manifest))
            except REFUSALS as error:
                self._held[table] = msgspec.structs.replace(self._held[table], since=batch_id, reason=str(error))
                break
            self._stream.held.release(table, batch_id)
            committed += 1
        else:
            del self._held[table]
            log.info("table_caught_up", table=table, batches=committed)
            return
        before = self._held[table]
        self._held[table] = msgspec.structs.replace(before, since=batch_id, batches=before.batches - committed)


def _wait_for(commits: Sequence[Future[None]]) -> None:
    """Wait for all commits; after an error those that have not begun are cancelled, and none runs on after the return.

    Raises:
        Exception: the error of the first table whose commit failed.
    """
    try:
        wait(commits, return_when=FIRST_EXCEPTION)
    finally:
        for each in commits:
            each.cancel()
        wait(commits)
    for each in commits:
        if not each.cancelled():
            each.result()
