"""Maintenance of an audit table by its own service: compacts closed days, deletes days that are over their retention.

No other program may do either. A day is Kafka's, and the newest day of the table counts as today if the clock of this
machine is later: a wrong clock deletes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from deltalake import DeltaTable

from gamelake.delta.appends import BatchTransaction, schema_of
from gamelake.delta.log.codec import live_files
from gamelake.delta.owned_tables import OwnedTable, Replacement
from gamelake.delta.tables import checkpoint_log, open_table
from gamelake.model.errors import TransientError
from gamelake.model.logs import event_logger
from gamelake.objects.store import Location, Store
from services.audit.tables import DAY

log = event_logger(__name__)

# The limit for the present day: a query of it reads no more files than that.
_HOT_FILES = 32
# For queries that read what was compacted or deleted. After a crash, files that no commit names wait as long.
_GRACE_HOURS = 24


def expired_days(days: Iterable[date], today: date, retention: timedelta) -> list[date]:
    """Return the days whose rows are older than the retention, in order; `today` by the clock of this machine."""
    days = sorted(set(days))
    if not days:
        return []
    oldest = min(today, days[-1]) - retention
    return [day for day in days if day < oldest]


def days_to_compact(files: Counter[date]) -> list[date]:
    """Return the closed days with more than one file, and the newest one if it has very many, in order."""
    newest = max(files, default=None)
    return sorted(day for day, count in files.items() if count > (_HOT_FILES if day == newest else 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainedTable:
    """The result of one run."""

    compacted: tuple[date, ...]
    deleted: tuple[date, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMaintenance:
    """Maintains one table; the caller appends nothing meanwhile.

    Attributes:
        table: its path in the lakehouse.
    """

    location: Location
    table: str
    retention: timedelta
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def run(self) -> MaintainedTable:
        """Delete, compact, and delete the files that neither needs any more.

        Raises:
            TransientError: another process has committed to the table, or its log can't be read whole.
            deltalake.exceptions.DeltaError: the store is not available.
        """
        files = Counter(self._day(file.partition) for file in live_files(open_table(self.location, self.table)))
        deleted = expired_days(files, self.now().date(), self.retention)
        self._delete(deleted)
        compacted = days_to_compact(Counter({day: count for day, count in files.items() if day not in set(deleted)}))
        handle = open_table(self.location, self.table)
        for day in compacted:
            handle.optimize.compact(partition_filters=[(DAY, "=", day.isoformat())])
        handle = self._read_whole(handle.version())
        if deleted or compacted:
            handle.cleanup_metadata()
        handle.vacuum(retention_hours=_GRACE_HOURS, dry_run=False, enforce_retention_duration=False, full=True)
        return MaintainedTable(compacted=tuple(compacted), deleted=tuple(deleted))

    def _read_whole(self, version: int) -> DeltaTable:
        """Open the table from a new log checkpoint, which has the files of each entry.

        delta-rs takes an entry that the store gives as an empty object for a commit without changes: vacuum would
        delete that commit's files.
        """
        if checkpoint_log(Store(self.location), self.table, version) is None:
            raise TransientError(f"the log of {self.table} can't be read whole; the next run deletes unused files")
        return open_table(self.location, self.table)

    def _delete(self, days: Iterable[date]) -> None:
        expired = set(days)
        if not expired:
            return
        handle = open_table(self.location, self.table)
        removed = [file for file in live_files(handle) if self._day(file.partition) in expired]
        table = OwnedTable(store=Store(self.location), path=self.table, schema=schema_of(handle), partition_by=(DAY,))
        transaction = BatchTransaction("audit-retention", handle.version() + 1)
        if not table.commit(handle, Replacement(files=[], removed=removed, transaction=transaction)):
            raise TransientError(f"another process writes {self.table}; the next run deletes its old days")

    @staticmethod
    def _day(partition: "object") -> date:
        return date.fromisoformat(partition[DAY])  # type: ignore[index] # of a table that is partitioned by it
