"""Commits decided batches to all their tables; a table that refuses a batch is held back, and all others continue."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

import msgspec

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.ledger.held_tables import REFUSALS, HeldTable
from gamelake.ledger.manifests import BatchManifest
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.streaming.driver.late_commits import ERASURE_WAITS, erase_again
from gamelake.streaming.driver.stream import Stream

log = event_logger(__name__)

# Each attempt to catch up reads the log of the table again.
_RETRY_SECONDS = 30.0
# The longest time that a batch waits for each table that catches up.
_CATCH_UP_SECONDS = 5.0


class BatchCommits:
    """Commits the batches of one stream, in the order of their ids; not for use by several threads.

    The batches of a table must be committed in order: Delta ignores a batch if a later one of the same application is
    committed. So if a table refuses a batch, its later batches wait too, and the table catches up from the first one.

    Args:
        stream: the stream.
        tables: of the lakehouse.
        failpoints: where tests kill the process.
        on_failure: called for each table whose commits, late ones included, fail for another reason, which makes the
            batch fail; called on the thread of the commit.
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
        # A process that was killed before its commits may have decided the next batch long ago.
        self._is_late = True
        self._retry_at = 0.0
        # Kept from batch to batch: starting 64 threads takes longer than the commits of a small batch.
        self._pool = ThreadPoolExecutor(tables.at_once, thread_name_prefix="commit")

    @property
    def held(self) -> Mapping[str, HeldTable]:
        """The tables that are held back, by name."""
        return self._held

    def refresh(self) -> None:
        """Read which tables are held back, because another process may have committed batches meanwhile.

        Each earlier batch is in all tables or waits for them: a waiting batch is recorded before it counts as done.
        """
        self._held = self._stream.held.all()
        self._is_read = self._is_late = True

    def commit(self, manifest: BatchManifest, catch_up_seconds: float = _CATCH_UP_SECONDS) -> None:
        """Commit a batch to its tables, several at a time; tables that have the batch already are skipped.

        If a table refuses the batch, only that table is held back. After any other error, commits that have not begun
        are cancelled, and the caller must commit the whole batch again.

        Args:
            manifest: of the batch; this process has committed all batches since the last `refresh`.
            catch_up_seconds: the longest time that each held table may catch up, if an attempt is due.

        Raises:
            GamelakeError: a commit failed for a reason that does not concern one table alone.
        """
        if not self._is_read:
            self.refresh()
        if self._held and time.monotonic() >= self._retry_at:
            self._retry_at = time.monotonic() + _RETRY_SECONDS
            for table in [*self._held]:
                with self._reporting_failure():
                    self._catch_up(table, time.monotonic() + catch_up_seconds)

        is_late, self._is_late = self._is_late, False
        # Computed once, since it visits all tables of the manifest.
        transaction = manifest.transaction

        def commit_table(entry: TableFiles) -> None:
            with self._reporting_failure():
                if (held := self._held.get(entry.table)) is not None:
                    self._hold(entry.table, manifest.batch_id, held.reason)
                else:
                    self._append(entry, transaction)
                    if is_late:
                        self._erase_again(manifest, entry)

        _wait_for([self._pool.submit(commit_table, entry) for entry in manifest.tables])

    @contextmanager
    def _reporting_failure(self) -> Iterator[None]:
        """Report an error of the block, which commits to one table."""
        try:
            yield
        except Exception:
            self._on_failure()
            raise

    def _erase_again(self, manifest: BatchManifest, entry: TableFiles) -> None:
        """Delete the rows of erased players that a late batch has added; hold the table back if that must wait."""
        try:
            erase_again(self._stream.store, manifest, entry)
        except ERASURE_WAITS as error:
            self._hold(entry.table, manifest.batch_id, str(error))

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
                action="all other tables continue",
            )
        self._failpoints.reach(Failpoint.AFTER_TABLE_COMMIT)

    def _hold(self, table: str, batch_id: int, reason: str) -> None:
        # Recorded before the batch counts as done: a later start finds waiting batches only here.
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
        """Commit the waiting batches of a table until it refuses one, has all of them, or the deadline has passed."""
        committed = 0
        for waiting in self._stream.held.waiting(table):
            batch_id = waiting.manifest.batch_id
            if committed and time.monotonic() > deadline:
                self._retry_at = 0.0
                break
            try:
                self._tables.append(waiting.entry, waiting.manifest.transaction)
                erase_again(self._stream.store, waiting.manifest, waiting.entry)
            except (*REFUSALS, *ERASURE_WAITS) as error:
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
    """Wait for all commits; after an error cancel those that have not begun. No commit runs after the return.

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
