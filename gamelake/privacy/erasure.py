"""Erasure of players: keys and data in the vault at once; on request their rows, and old files that still have them.

Every step is idempotent: the next run finishes a run that was killed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from gamelake.model.errors import TransientError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.privacy.erasure_records import (
    ErasedTable,
    ErasureDone,
    ErasureRecords,
    ErasureRequest,
    PlannedFiles,
    PurgePlan,
    Reach,
)
from gamelake.privacy.player_directory import IdentifiedPlayer
from gamelake.privacy.row_eraser import RowEraser
from gamelake.privacy.vault.vault import Vault
from gamelake.storage.clones import Clones
from gamelake.storage.delta_log import live_paths
from gamelake.storage.leases import Lease
from gamelake.storage.player_rows import PlayerFilter, PlayerTable, count_rows, player_tables, rows_in_file
from gamelake.storage.rewrites import maintenance_lease, revision_lease
from gamelake.storage.store import Store
from gamelake.storage.table_log import TableLog, removal_times
from gamelake.storage.tables import open_table

log = event_logger(__name__)

_DELETES_PER_CHECK = 100
_ATTEMPTS, _PAUSE = 45, timedelta(seconds=1)

Wait = Callable[[timedelta], bool]


def plan_purge(
    store: Store, run: str, tables: list[PlayerTable], player_filter: PlayerFilter, grace: timedelta
) -> PurgePlan:
    """Plan the deletion of removed files that still exist and have rows of the players.

    Not only files of this run: compaction and earlier erasures leave files with the same rows behind too.
    """
    newest, planned = 0, []
    for table in tables:
        removed = removal_times(store, table.name)
        paths = tuple(path for path in sorted(removed) if rows_in_file(store, table, path, player_filter))
        if paths:
            planned.append(PlannedFiles(table=table.name, paths=paths))
            newest = max(newest, *(removed[path] for path in paths))
    not_before = datetime.fromtimestamp(newest / 1000, UTC) + grace
    return PurgePlan(run=run, not_before=not_before, tables=tuple(planned))


@dataclass(frozen=True, slots=True)
class PlayerErasure:
    """Carries out erasures in one vault and one lakehouse.

    `wait` sleeps for a time and returns whether to go on; `grace` is how long readers may still need a removed file.
    """

    vault: Vault
    store: Store
    grace: timedelta
    wait: Wait
    failpoints: Failpoints = field(default_factory=Failpoints)

    def begin(self, request: ErasureRequest) -> None:
        """Record the request, so that it is carried out even if this process dies; then destroy keys and data.

        Raises:
            VaultUnavailableError: the vault is unavailable.
        """
        ErasureRecords(self.store).begin(request)
        self.failpoints.reach(Failpoint.AFTER_ERASURE_REQUEST)
        self._forget(request)

    def catch_up(self, run: str) -> tuple[str, ...]:
        """Record the gateway's erasures, and finish the runs that others have started.

        Returns the runs that were finished. The record of erasures is what remains if the vault is lost.

        Raises:
            VaultUnavailableError: the vault is unavailable.
            TransientError: conflicts with other processes at every attempt.
        """
        records = ErasureRecords(self.store)
        records.adopt(self.vault.erasures_after(0))
        others = [request for request in records.unfinished() if request.run != run]
        return tuple(request.run for request in others if self.carry_out(request) is not None)

    def carry_out(self, request: ErasureRequest) -> ErasureDone | None:
        """Carry out a request, whatever part of it is done already; None if the wait was interrupted.

        Raises:
            VaultUnavailableError: the vault is unavailable.
            TransientError: conflicts over the vault's files or a table's commit at every attempt.
        """
        forgotten = self._forget(request)
        self.failpoints.reach(Failpoint.AFTER_FORGETTING)
        player_filter = PlayerFilter(frozenset(request.pseudonyms))
        tables, clones = ([], ()) if request.reach is Reach.VAULT else self._erase_rows(request, player_filter)
        plan = self._purge(request, tables, player_filter) if request.reach is Reach.FILES else None
        if request.reach is Reach.FILES and plan is None:
            return None
        done = ErasureDone(
            run=request.run,
            finished_at=datetime.now(UTC),
            forgotten=forgotten,
            tables=self._erased_tables(request, tables, plan),
            clones=clones,
        )
        ErasureRecords(self.store).finish(done)
        return done

    def _erase_rows(
        self, request: ErasureRequest, player_filter: PlayerFilter
    ) -> tuple[list[PlayerTable], tuple[str, ...]]:
        """Delete the rows of the players; returns the tables that were read, and the clones that were dropped."""
        # The lease keeps out replays and restores, which could commit such rows again after this.
        with revision_lease(self.store):
            tables = player_tables(self.store)
            for number, table in enumerate(tables, 1):
                RowEraser(self.store, table, player_filter, request.run, self.failpoints).erase()
                log.info("rows_erased", table=table.name, number=number, tables=len(tables))
            # After the rows: clones that are made from now on have none of them.
            return tables, self._drop_clones(player_filter)

    def _drop_clones(self, player_filter: PlayerFilter) -> tuple[str, ...]:
        """Drop the clones that have rows of the players; analysts clone again, without them."""
        clones = Clones(self.store)
        found = clones.with_rows_of(player_filter)
        for clone in found:
            clones.drop(clone)
            log.info("clone_dropped", clone=clone.name, reason="it had rows of an erased player")
        return tuple(clone.name for clone in found)

    def _forget(self, request: ErasureRequest) -> tuple[int, ...]:
        """Erase the players in the vault; returns the numbers of the erasures, those of earlier attempts included."""
        for pseudonym in request.pseudonyms:
            player = self.vault.named(pseudonym)
            if player is not None:
                self.vault.forget(player.token, request.requested_by)
        self._destroy_remains()
        wanted = set(request.pseudonyms)
        return tuple(each.number for each in self.vault.erasures_after(0) if each.pseudonym in wanted)

    def _destroy_remains(self) -> None:
        """Destroy what deleted rows left in the database's files; waits until other connections allow it."""
        for _ in range(_ATTEMPTS):
            if self.vault.destroy_remains():
                return
            if not self.wait(_PAUSE):
                break
        raise TransientError("the vault's files still have deleted rows, as other processes use them; try again")

    def _purge(
        self, request: ErasureRequest, tables: list[PlayerTable], player_filter: PlayerFilter
    ) -> PurgePlan | None:
        records = ErasureRecords(self.store)
        plan = records.planned(request.run) or records.plan(
            plan_purge(self.store, request.run, tables, player_filter, self.grace)
        )
        self.failpoints.reach(Failpoint.AFTER_PURGE_PLAN)
        left = self._not_before(plan) - datetime.now(UTC)
        if plan.tables and left > timedelta(0):
            log.info("purge_waits", seconds=round(left.total_seconds()), action="then deletes the removed files")
            if not self.wait(left):
                return None
        for table in plan.tables:
            with maintenance_lease(self.store, table.table) as lease:
                # Before the comparison with the table: a delete may reach the store once a restore has the lease.
                records.begin_deletion(request.run)
                self._delete_removed(table, lease)
        return plan

    def _not_before(self, plan: PurgePlan) -> datetime:
        """When readers no longer need any planned file: after a restore, some were removed later than was planned."""
        removed = [at for table in plan.tables for at in removal_times(self.store, table.table, table.paths).values()]
        return max(plan.not_before, datetime.fromtimestamp(max(removed, default=0) / 1000, UTC) + self.grace)

    def _delete_removed(self, planned: PlannedFiles, lease: Lease) -> None:
        """Delete the planned files of a table, whose lease keeps restores out."""
        back = set(planned.paths) & set(live_paths(open_table(self.store.location, planned.table)))
        if back:
            raise TransientError(
                f"{len(back)} of the {len(planned.paths)} files of {planned.table} that were to be deleted are in use "
                "again: a restore has brought them back; none of them was deleted. Run the erasure again: it deletes "
                "their rows first"
            )
        for number, path in enumerate(planned.paths):
            if number % _DELETES_PER_CHECK == 0:
                lease.require()
            self.store.delete(f"{planned.table}/{path}")
            self.failpoints.reach(Failpoint.AFTER_PURGED_FILE)

    def _erased_tables(
        self, request: ErasureRequest, tables: list[PlayerTable], plan: PurgePlan | None
    ) -> tuple[ErasedTable, ...]:
        """The result by table, from the tables' logs, so that it is complete after a kill too."""
        purged = {each.table: each.paths for each in plan.tables} if plan else {}
        erased = []
        for table in tables:
            ours = [each for each in TableLog.read(self.store, table.name).erasures if each.run == request.run]
            erased.append(
                ErasedTable(
                    table=table.name,
                    rows=sum(each.rows for each in ours),
                    versions=tuple(each.version for each in ours),
                    files=sum(each.files for each in ours),
                    purged=purged.get(table.name, ()),
                )
            )
        return tuple(erased)


class TableEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a table has of the players: current rows, the files to rewrite, removed files with such rows."""

    table: str
    rows: int
    files: int
    bytes: int
    older_files: int


class ErasureEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure would delete: keys and data in the vault, rows and files of tables, and clones (dry run)."""

    keys: int
    sealed_data: int
    tables: tuple[TableEstimate, ...]
    clones: tuple[str, ...] = ()


def estimate_erasure(store: Store, vault: Vault, players: Sequence[IdentifiedPlayer], reach: Reach) -> ErasureEstimate:
    """Count what an erasure of this reach would delete."""
    player_filter = PlayerFilter(frozenset(player.pseudonym for player in players))
    stored = [player.stored for player in players if player.stored is not None]
    tables = [] if reach is Reach.VAULT else player_tables(store)
    return ErasureEstimate(
        keys=len(stored),
        sealed_data=sum(len(vault.data_of(each.pseudonym)) for each in stored),
        tables=tuple(_of_table(store, table, player_filter) for table in tables),
        clones=() if reach is Reach.VAULT else tuple(each.name for each in Clones(store).with_rows_of(player_filter)),
    )


def _of_table(store: Store, table: PlayerTable, player_filter: PlayerFilter) -> TableEstimate:
    found = count_rows(store, table, player_filter)
    removed = removal_times(store, table.name)
    older = sum(1 for path in removed if rows_in_file(store, table, path, player_filter))
    return TableEstimate(table=table.name, rows=found.rows, files=found.files, bytes=found.bytes, older_files=older)
