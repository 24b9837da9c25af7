"""Observers of a stream's batches, and the one that keeps the table gold/quality up to date."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from gamelake.model.logs import event_logger
from gamelake.quality.daily import QualityTable
from gamelake.storage.manifests import BatchManifest

log = event_logger(__name__)

_QUALITY_UPDATE_SECONDS = 60.0


class BatchObserver:
    """The base of all observers: the methods do nothing.

    They are called on the thread that runs the batch, so they must be quick and must not raise.
    """

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """All tables have the batch. After a crash two processes may report the same batch.

        Args:
            manifest: of the batch.
            decide_seconds: how long its tasks took to read and write all records.
            commit_seconds: how long the commits to all tables took.
        """

    def commit_failed(self) -> None:
        """The commit to one table failed, and the batch with it."""

    def log_checkpoint_failed(self) -> None:
        """The log checkpoint of a table was not written; called on the thread that writes them."""

    def window_checked(self, left_out: int) -> None:
        """The deduplication window of a batch is known; so many of its events are beyond the limit on their number."""

    def tables_held_back(self, count: int) -> None:
        """A batch is committed; so many tables are held back, because they refused this one or an earlier one."""


class BatchObservers(BatchObserver):
    """Calls several observers, in their order."""

    def __init__(self, observers: Sequence[BatchObserver]) -> None:
        self._observers = observers

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Call each observer."""
        for each in self._observers:
            each.batch_committed(manifest, decide_seconds, commit_seconds)

    def commit_failed(self) -> None:
        """Call each observer."""
        for each in self._observers:
            each.commit_failed()

    def log_checkpoint_failed(self) -> None:
        """Call each observer."""
        for each in self._observers:
            each.log_checkpoint_failed()

    def window_checked(self, left_out: int) -> None:
        """Call each observer."""
        for each in self._observers:
            each.window_checked(left_out)

    def tables_held_back(self, count: int) -> None:
        """Call each observer."""
        for each in self._observers:
            each.tables_held_back(count)


class QualityTableUpdater(BatchObserver):
    """Updates gold/quality in a thread, once a minute at most; a failed update is retried with a later batch."""

    def __init__(self, table: QualityTable, pool: ThreadPoolExecutor) -> None:
        self._table = table
        self._pool = pool
        self._next = 0.0
        self._is_due = False

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Start an update if the batch was evaluated by rules and the last update is a minute ago."""
        if manifest.judged.rules:
            self._is_due = True
            if time.monotonic() >= self._next:
                self._next = time.monotonic() + _QUALITY_UPDATE_SECONDS
                self._pool.submit(self.catch_up)

    def catch_up(self) -> None:
        """Add to the table what it lacks; never raises."""
        if self._is_due:
            self._is_due = False
            try:
                self._table.catch_up()
            except Exception:  # statistics must not stop the stream
                self._is_due = True
                log.exception("quality_table_not_updated", table="gold/quality", action="a later batch tries again")


@contextmanager
def updating_quality_table(table: QualityTable) -> Iterator[QualityTableUpdater]:
    """Update the table while the block runs, and once more at its end."""
    with ThreadPoolExecutor(1, thread_name_prefix="gold-quality") as pool:
        keeper = QualityTableUpdater(table, pool)
        yield keeper
        pool.submit(keeper.catch_up)
