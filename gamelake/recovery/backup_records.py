"""Records in the lakehouse of the backups that are kept."""

from datetime import datetime

import msgspec

from gamelake.objects.records import Records
from gamelake.objects.store import Store


class BackupRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a backup.

    Attributes:
        name: name of the backup.
        made_at: when the backup was started.
        files: number of its files.
        bytes: size of its files.
    """

    name: str
    made_at: datetime
    files: int
    bytes: int


class BackupRecords:
    """The records of all backups that are kept; the backups themselves are stored outside the lakehouse."""

    def __init__(self, store: Store) -> None:
        self._records = Records(store, "_gamelake/backups", BackupRecord)

    def all(self) -> list[BackupRecord]:
        """Read the records, oldest first."""
        return sorted(self._records.all(), key=lambda record: record.made_at)

    def times(self) -> list[datetime]:
        """Return the start times of the backups, oldest first."""
        return [record.made_at for record in self.all()]

    def add(self, record: BackupRecord) -> None:
        """Record a backup that is complete."""
        self._records.put(record.name, record)

    def delete(self, name: str) -> None:
        """Delete the record of a deleted backup."""
        self._records.delete(name)
