"""Repairs bounds and partition values of a table that delta-rs reads as other texts; see `misread_files`.

Source: Delta Transaction Log Protocol, heading "Add File and Remove File": an add of a file that is in the table
replaces its statistics, and changes no data. The same version may not remove the file, too.
"""

from dataclasses import dataclass

import msgspec

from gamelake.storage.commits import CommitConflictError, commit_with_retry
from gamelake.storage.delta_log import commit_info, now_milliseconds, row_count, without_data_change
from gamelake.storage.leases import Lease
from gamelake.storage.misread_files import misread_files
from gamelake.storage.rewrites import commit_rewrite, maintenance_lease
from gamelake.storage.store import Store
from gamelake.storage.table_log import TableLog
from gamelake.storage.tables import open_table

_ATTEMPTS = 20


class RepairedBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Files that were added again with right bounds and partition values, or would be; the commit's version."""

    table: str
    version: int
    files: int
    rows: int


@dataclass(frozen=True, slots=True)
class BoundsRepair:
    """Repairs the bounds and partition values of one table."""

    store: Store
    table: str

    def dry_run(self) -> list[RepairedBounds]:
        """The commit that would be made; none if nothing is misread."""
        return self._attempt(None)

    def repair(self) -> list[RepairedBounds]:
        """Add the misread files again in one commit; streams may append meanwhile.

        Raises:
            LeaseHeldError: another process holds the maintenance lease of the table.
            TransientError: other writers removed files at every attempt.
        """
        with maintenance_lease(self.store, self.table) as lease:
            return commit_with_retry(self.table, _ATTEMPTS, lambda: self._attempt(lease))

    def _attempt(self, lease: Lease | None) -> list[RepairedBounds]:
        handle = open_table(self.store.location, self.table)
        misread, version = misread_files(handle, TableLog.read(self.store, self.table).adds), handle.version()
        if not misread:
            return []
        committed: int | None = version + 1
        if lease is not None:
            info = commit_info(now_milliseconds(), "REPAIR", {"what": "bounds and partition values"})
            actions = [info, *(without_data_change({"add": add}) for add in misread)]
            committed = commit_rewrite(self.store, self.table, version, actions, lease)
        if committed is None:
            raise CommitConflictError
        rows = sum(map(row_count, misread))
        return [RepairedBounds(table=self.table, version=committed, files=len(misread), rows=rows)]
