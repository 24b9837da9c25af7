"""Deletes rows of players from tables while a stream appends to them.

delta-rs's own delete is not used: its commit fails after every concurrent append, it truncates statistics of times to
milliseconds, so that engines skip files they must read, and it writes the pseudonym into the log for good (0028).
Source: Delta Transaction Log Protocol, heading "Writer Requirements".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelake.delta.columns import without_views
from gamelake.delta.data_files import DataFile
from gamelake.delta.log.codec import (
    ERASURE_NOTE,
    Action,
    FileEntry,
    add_action,
    commit_info,
    live_files,
    now_milliseconds,
    remove_action,
)
from gamelake.delta.log.table_features import TableDemands, TableUse
from gamelake.delta.rewrites import PATIENT_TIMING, commit_rewrite, discard, maintenance_lease, write_replacement
from gamelake.delta.tables import open_table
from gamelake.model.errors import TransientError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.objects.leases import Lease, LeaseTiming
from gamelake.objects.store import Store
from gamelake.scans.player_rows import PlayerFilter, PlayerTable, rows_in_file

_ATTEMPTS = 100
_ROWS_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """A file that had such rows, their number, and the new files with its other rows."""

    old: FileEntry
    erased: int
    new: Sequence[DataFile]


def erasure_actions(rewritten: Sequence[RewrittenFile], run: str) -> list[Action]:
    """Return the actions of a commit that replaces files by their rewritten ones, which exist already."""
    now = now_milliseconds()
    adds = [add_action(file, now) for each in rewritten for file in each.new]
    metrics = {
        "numRemovedFiles": len(rewritten),
        "numAddedFiles": len(adds),
        "numDeletedRows": sum(each.erased for each in rewritten),
    }
    # No predicate: it would keep the pseudonym in the log.
    info = commit_info(now, "DELETE", {"predicate": "[]"}, metrics=metrics, notes={ERASURE_NOTE: run})
    return [info, *(remove_action(each.old, now) for each in rewritten), *adds]


@dataclass(slots=True)
class RowEraser:
    """Deletes rows of players from one table, those that a stream appends meanwhile included."""

    store: Store
    table: PlayerTable
    player_filter: PlayerFilter
    run: str
    failpoints: Failpoints = field(default_factory=Failpoints)
    timing: LeaseTiming = PATIENT_TIMING
    _clean: set[str] = field(default_factory=set)

    def erase(self) -> bool:
        """Commit until no row of the newest version belongs to the players; returns False if none did.

        Raises:
            TransientError: at every attempt rows of the players had arrived since, or other writers removed the same
                files; or another process holds the maintenance lease.
            StoreError: the table has a feature, or a kind of partition column, that is not ours to write.
        """
        with maintenance_lease(self.store, self.table.name, self.timing) as lease:
            return self._erase(lease)

    def _erase(self, lease: Lease) -> bool:
        commits = 0
        for _ in range(_ATTEMPTS):
            handle = open_table(self.store.location, self.table.name)
            TableDemands.of(handle).require(handle.table_uri, TableUse.REWRITE)
            rewritten = list(self._rewritten(live_files(handle)))
            if not rewritten:
                return commits > 0
            self.failpoints.reach(Failpoint.AFTER_ERASED_FILES)
            if commit_rewrite(
                self.store, self.table.name, handle.version(), erasure_actions(rewritten, self.run), lease
            ):
                commits += 1
                self._clean |= {file.path for each in rewritten for file in each.new}
                self.failpoints.reach(Failpoint.AFTER_ERASED_TABLE)
            else:
                discard(self.store, self.table.name, (file for each in rewritten for file in each.new))
        raise TransientError(
            f"{self.table.name}: {_ATTEMPTS} attempts left rows of players: new ones arrived after {commits} commits, "
            "and other writers removed the same files at the other attempts; try again"
        )

    def _rewritten(self, files: Sequence[FileEntry]) -> Iterator[RewrittenFile]:
        for file in files:
            if file.relative_path in self._clean:
                continue
            erased = rows_in_file(self.store, self.table, file.relative_path, self.player_filter)
            if erased:
                yield RewrittenFile(
                    file,
                    erased,
                    [write_replacement(self.store, self.table.name, file, rows) for rows in self._kept_rows(file)],
                )
            else:
                self._clean.add(file.relative_path)

    def _kept_rows(self, file: FileEntry) -> Iterator[pa.Table]:
        """The other rows of a file, in parts that fit into memory."""
        content = self.store.get(f"{self.table.name}/{file.relative_path}")
        parquet = pq.ParquetFile(pa.BufferReader(content or b""))
        groups: list[int] = []
        rows = 0
        for group in range(parquet.num_row_groups):
            groups.append(group)
            rows += parquet.metadata.row_group(group).num_rows
            if rows >= _ROWS_AT_ONCE or group == parquet.num_row_groups - 1:
                part = _without_views(parquet.read_row_groups(groups))
                kept = part.filter(pc.invert(self.table.rows_in(part, self.player_filter)))
                if kept.num_rows:
                    yield kept
                groups, rows = [], 0


def _without_views(rows: pa.Table) -> pa.Table:
    return rows.cast(pa.schema([field.with_type(without_views(field.type)) for field in rows.schema]))
