"""How the tables are kept up, as `contracts/games.yaml` says it."""

from datetime import timedelta
from typing import Annotated

import msgspec

ColumnName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,62}$")]


class UpkeepPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What compaction and vacuum do.

    Attributes:
        hot_files: so many small files a partition may have while its day lasts.
        cluster_by: columns by which rows lie in a packed file; those that questions filter by.
        retention_days: versions of a table are kept for so long.
        restore_window_days: a table must be restorable to any moment so long ago.
        longest_query_hours: no reader holds a version for longer.
        backup_every_hours: `make backup` is run so often, by whoever runs the platform.
        backups_kept: so many of its backups are kept, the newest.
    """

    hot_files: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 24
    cluster_by: tuple[ColumnName, ...] = ("event_name", "event_time")
    retention_days: Annotated[float, msgspec.Meta(gt=0, le=3_650)] = 14
    restore_window_days: Annotated[float, msgspec.Meta(gt=0, le=3_650)] = 7
    longest_query_hours: Annotated[float, msgspec.Meta(gt=0, le=8_760)] = 6
    backup_every_hours: Annotated[float, msgspec.Meta(gt=0, le=8_760)] = 24
    backups_kept: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 8

    @property
    def retention(self) -> timedelta:
        """How long versions are kept."""
        return timedelta(days=self.retention_days)

    @property
    def least_retention(self) -> timedelta:
        """What a retention must not be shorter than, whatever streams are behind."""
        return max(timedelta(days=self.restore_window_days), timedelta(hours=self.longest_query_hours))

    @property
    def backup_interval(self) -> timedelta:
        """From one backup to the next."""
        return timedelta(hours=self.backup_every_hours)

    @property
    def backups_reach(self) -> timedelta:
        """How far back there always is a backup, once so many were made."""
        return (self.backups_kept - 1) * self.backup_interval
