"""Observers of a stream's batches, one of which keeps the table gold/quality up to date."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec

from gamelake.ledger.manifests import BatchManifest
from gamelake.model.logs import event_logger
from gamelake.quality.daily import QualityTable

log = event_logger(__name__)

_QUALITY_UPDATE_SECONDS = 60.0


class BatchObserver:
    """The base of all observers; its methods do nothing.

    For a new batch `FanOut` calls `window_checked`, `tables_held_back` and `batch_committed`, in this order. For a
    batch that an earlier attempt decided, it calls only the last two. These run on the thread of the batch.
    `commit_failed` and `log_checkpoint_failed` may run on other threads, several at a time. All methods must be quick.
    An error is logged, and stops neither the batch nor other observers.
    """

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Note that all tables have a batch; after a crash two processes may report the same batch.

        Args:
            manifest: of the batch.
            decide_seconds: the time in which the tasks read and wrote all records.
            commit_seconds: the time of the commits to all tables.
        """

    def commit_failed(self) -> None:
        """Note that the commit to one table failed, which makes the batch fail."""

    def log_checkpoint_failed(self) -> None:
        """Note that the log checkpoint of a table was not written; called on the thread that writes checkpoints."""

    def window_checked(self, left_out: int) -> None:
        """Note the deduplication window of a batch.

        Args:
            left_out: the number of the window's events that exceed its limit; 0 without a window.
        """

    def tables_held_back(self, count: int) -> None:
        """Note the number of held tables after the commits of a batch.

        Args:
            count: the number of tables that refused this batch or an earlier one.
        """


class QualityTableUpdater(BatchObserver):
    """Updates gold/quality in a thread, once a minute at most; a failed update is retried with a later batch."""

    def __init__(self, table: QualityTable, pool: ThreadPoolExecutor) -> None:
        self._table = table
        self._pool = pool
        self._next = 0.0
        self._is_due = False

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Start an update if rules evaluated the batch and the last update began at least a minute ago."""
        if manifest.judged.rules:
            self._is_due = True
            if time.monotonic() >= self._next:
                self._next = time.monotonic() + _QUALITY_UPDATE_SECONDS
                self._pool.submit(self.catch_up)

    def catch_up(self) -> None:
        """Add the missing batches to the table; never raise."""
        if self._is_due:
            self._is_due = False
            try:
                self._table.catch_up()
            except Exception:  # statistics must not stop the stream
                self._is_due = True
                log.exception("quality_table_not_updated", table="gold/quality", action="a later batch tries again")


@contextmanager
def updating_quality_table(table: QualityTable) -> Iterator[QualityTableUpdater]:
    """Update the table while the block runs, and once more at the end of the block."""
    with ThreadPoolExecutor(1, thread_name_prefix="gold-quality") as pool:
        keeper = QualityTableUpdater(table, pool)
        yield keeper
        pool.submit(keeper.catch_up)


class BatchSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The log line of a batch: its counts and how long its parts took.

    Attributes:
        batch: the batch id.
        records: the number of records that were read.
        dead_letters: the number of dead letters by reason.
        duplicates: the number of duplicates by game.
        quarantined: the number of rows in the quarantine by rule.
        dropped: the number of rows that were dropped by rule.
        tables: the number of tables that the batch writes.
        files: the number of data files of all tables.
        bytes: the size of these files.
        decide_seconds: the time until the batch was decided.
        commit_seconds: the time of the commits after that.
        committed_at: the end of the commits in UTC, in ISO 8601.
    """

    batch: int
    records: int
    dead_letters: dict[str, int]
    duplicates: dict[str, int] = {}
    quarantined: dict[str, int] = {}
    dropped: dict[str, int] = {}
    tables: int
    files: int
    bytes: int
    decide_seconds: float
    commit_seconds: float
    committed_at: str


def summary_of(manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> dict[str, object]:
    """Return the fields of a batch's log line, as `BatchSummary` has them."""
    files = [file for entry in manifest.tables for file in entry.files]
    summary = BatchSummary(
        batch=manifest.batch_id,
        records=manifest.records,
        dead_letters=manifest.dead_letters,
        duplicates=manifest.duplicates,
        quarantined=manifest.judged.quarantined,
        dropped=manifest.judged.dropped,
        tables=len(manifest.tables),
        files=len(files),
        bytes=sum(file.size for file in files),
        decide_seconds=round(decide_seconds, 3),
        commit_seconds=round(commit_seconds, 3),
        committed_at=datetime.now(UTC).isoformat(),
    )
    return msgspec.structs.asdict(summary)
