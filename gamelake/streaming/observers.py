"""What the fan-out tells of its batches, to whoever wants to know."""

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol

from gamelake.quality.daily import QualityTable
from gamelake.storage.manifests import BatchManifest


class BatchObserver(Protocol):
    """Is called in the middle of a batch: it must be quick, and must not raise."""

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Every table has the batch; after a crash that may be told twice of one batch, by two processes."""

    def commit_failed(self) -> None:
        """A commit of one table ended in an error; the batch ends with it."""


class Unobserved:
    """Nobody wants to know."""

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Do nothing."""

    def commit_failed(self) -> None:
        """Do nothing."""


class Several:
    """Passes on what it is told."""

    def __init__(self, observers: Sequence[BatchObserver]) -> None:
        self._observers = observers

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Tell everyone."""
        for each in self._observers:
            each.batch_committed(manifest, decide_seconds, commit_seconds)

    def commit_failed(self) -> None:
        """Tell everyone."""
        for each in self._observers:
            each.commit_failed()


log = logging.getLogger(__name__)

_EVERY_SECONDS = 60.0


class QualityTableUpdater:
    """Is told of batches; the table is written beside the stream, and what goes wrong there is made up for later."""

    def __init__(self, table: QualityTable, pool: ThreadPoolExecutor) -> None:
        self._table = table
        self._pool = pool
        self._next = 0.0
        self._is_due = False

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Every table has the batch."""
        if manifest.judged.rules:
            self._is_due = True
            if time.monotonic() >= self._next:
                self._next = time.monotonic() + _EVERY_SECONDS
                self._pool.submit(self.catch_up)

    def commit_failed(self) -> None:
        """Do nothing."""

    def catch_up(self) -> None:
        """Take in what the table lacks; never raises."""
        if self._is_due:
            self._is_due = False
            try:
                self._table.catch_up()
            except Exception:  # figures must not hold up the stream that they are about
                self._is_due = True
                log.exception("gold/quality is not up to date; the next look makes up for it")


@contextmanager
def updating_quality_table(table: QualityTable) -> Iterator[QualityTableUpdater]:
    """Keep the table up until the end of the block."""
    with ThreadPoolExecutor(1, thread_name_prefix="gold-quality") as pool:
        keeper = QualityTableUpdater(table, pool)
        yield keeper
        pool.submit(keeper.catch_up)
