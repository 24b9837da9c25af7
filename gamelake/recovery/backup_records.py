"""The records of backups in the lakehouse: when each was made, and which are still kept."""

from datetime import datetime

import msgspec

from gamelake.storage.store import Store

_FOLDER = "_gamelake/backups"


class BackupRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A backup: its name, when it was started, and its size."""

    name: str
    made_at: datetime
    files: int
    bytes: int


class BackupRecords:
    """The records of all backups that are kept; the backups themselves are outside of the lakehouse."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> list[BackupRecord]:
        """The records, oldest first."""
        found = [self._store.get(path) for path in self._store.paths(_FOLDER)]
        records = [msgspec.json.decode(each, type=BackupRecord) for each in found if each is not None]
        return sorted(records, key=lambda record: record.made_at)

    def times(self) -> list[datetime]:
        """When each was made."""
        return [record.made_at for record in self.all()]

    def note(self, record: BackupRecord) -> None:
        """Record a backup that is complete."""
        self._store.put(_path(record.name), msgspec.json.encode(record))

    def forget(self, name: str) -> None:
        """Delete the record of a deleted backup."""
        self._store.delete(_path(name))


def _path(name: str) -> str:
    return f"{_FOLDER}/{name}.json"
