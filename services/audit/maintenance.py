"""Maintenance of an audit table by its own service: compacts closed days, deletes days that are over their retention.

No other program may do either. A day is Kafka's, and the newest day of the table counts as today if the clock of this
machine is later: a wrong clock deletes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from gamelake.model.errors import TransientError
from gamelake.model.logs import event_logger
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.delta_log import live_files
from gamelake.storage.manifests import TableFiles
from gamelake.storage.rewrites import Replacement
from gamelake.storage.store import Location, Store
from gamelake.storage.tables import open_table
from services.audit.tables import DAY

log = event_logger(__name__)

# Of the day that lasts: a query of it reads no more files than that.
_HOT_FILES = 32
# For queries that read what was compacted or deleted. After a crash, files that no commit names wait as long.
_GRACE_HOURS = 24


def expired_days(days: Iterable[date], today: date, retention: timedelta) -> list[date]:
    """The days whose rows are older than the retention, in order; `today` by the clock of this machine."""
    days = sorted(set(days))
    if not days:
        return []
    oldest = min(today, days[-1]) - retention
    return [day for day in days if day < oldest]


def days_to_compact(files: Counter[date]) -> list[date]:
    """The closed days with more than one file, and the newest one if it has very many, in order."""
    newest = max(files, default=None)
    return sorted(day for day, count in files.items() if count > (_HOT_FILES if day == newest else 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainedTable:
    """What one run did."""

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
            TransientError: another process has committed to the table.
            deltalake.exceptions.DeltaError: the store is not available.
        """
        files = Counter(self._day(file.partition) for file in live_files(open_table(self.location, self.table)))
        deleted = expired_days(files, self.now().date(), self.retention)
        self._delete(deleted)
        compacted = days_to_compact(Counter({day: count for day, count in files.items() if day not in set(deleted)}))
        handle = open_table(self.location, self.table)
        for day in compacted:
            handle.optimize.compact(partition_filters=[(DAY, "=", day.isoformat())])
        if deleted or compacted:
            handle = open_table(self.location, self.table)
            handle.create_checkpoint()
            handle.cleanup_metadata()
        handle.vacuum(retention_hours=_GRACE_HOURS, dry_run=False, enforce_retention_duration=False, full=True)
        return MaintainedTable(compacted=tuple(compacted), deleted=tuple(deleted))

    def _delete(self, days: Iterable[date]) -> None:
        expired = set(days)
        if not expired:
            return
        handle = open_table(self.location, self.table)
        removed = [file for file in live_files(handle) if self._day(file.partition) in expired]
        entry = TableFiles(table=self.table, partition_by=(DAY,), schema="", files=())
        version = handle.version() + 1
        commit = Replacement(entry=entry, removed=removed, transaction=BatchTransaction("audit-retention", version))
        if not commit.commit(Store(self.location), version):
            raise TransientError(f"another process writes {self.table}; the next run deletes its old days")

    @staticmethod
    def _day(partition: "object") -> date:
        return date.fromisoformat(partition[DAY])  # type: ignore[index] # of a table that is partitioned by it
