"""Keeps gold/quality up beside a stream: looks at what its batches came to, once a minute and once at the end."""

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from gamelake.lake.manifest import BatchManifest
from gamelake.quality.daily import QualityTable

log = logging.getLogger(__name__)

_EVERY_SECONDS = 60.0


class QualityKeeper:
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
def keeping_quality(table: QualityTable) -> Iterator[QualityKeeper]:
    """Keep the table up until the end of the block."""
    with ThreadPoolExecutor(1, thread_name_prefix="gold-quality") as pool:
        keeper = QualityKeeper(table, pool)
        yield keeper
        pool.submit(keeper.catch_up)
