"""Erasure of players: keys and data in the vault at once; on request their rows, and old files that still have them.

Every step is idempotent: the next run finishes a run that was killed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from gamelake.delta.log.codec import live_paths
from gamelake.delta.log.table_log import TableLog, removal_times
from gamelake.delta.rewrites import maintenance_lease
from gamelake.delta.tables import open_table
from gamelake.ledger.clones import Clones
from gamelake.model.errors import TransientError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.objects.leases import Lease
from gamelake.objects.store import Store
from gamelake.privacy.erasure_records import (
    ErasedTable,
    ErasureDone,
    ErasureRecords,
    ErasureRequest,
    PlannedFiles,
    PurgePlan,
    Reach,
)
from gamelake.privacy.lake_erasure import LakeErasure
from gamelake.privacy.player_directory import IdentifiedPlayer
from gamelake.privacy.vault.vault import Vault
from gamelake.scans.player_rows import PlayerFilter, PlayerTable, count_rows, player_tables, rows_in_file

log = event_logger(__name__)

_DELETES_PER_CHECK = 100
_ATTEMPTS, _PAUSE = 45, timedelta(seconds=1)
_PLANS = 10

Wait = Callable[[timedelta], bool]


@dataclass(frozen=True, slots=True)
class PlayerErasure:
    """Carries out erasures in one vault and one lakehouse.

    `wait` sleeps for a time and returns whether to continue; `grace` is how long readers may still need a removed file.
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
        lake = LakeErasure(self.store, request, self.failpoints)
        if request.reach is not Reach.VAULT:
            lake.erase()
        plan = self._purge(lake) if request.reach is Reach.FILES else None
        if request.reach is Reach.FILES and plan is None:
            return None
        done = ErasureDone(
            run=request.run,
            finished_at=datetime.now(UTC),
            forgotten=forgotten,
            tables=self._erased_tables(request, lake.tables, plan),
            clones=tuple(lake.clones),
            left=() if request.reach is Reach.VAULT else lake.left(),
        )
        ErasureRecords(self.store).finish(done)
        return done

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

    def _purge(self, lake: LakeErasure) -> PurgePlan | None:
        """Delete removed files with rows of the players; None if the wait was interrupted."""
        plan = self._settled_plan(lake)
        for table in plan.tables if plan else ():
            with maintenance_lease(self.store, table.table) as lease:
                # Before the comparison with the table: a delete may reach the store once a restore has the lease.
                ErasureRecords(self.store).begin_deletion(lake.request.run)
                self._delete_removed(table, lease)
        return plan

    def _settled_plan(self, lake: LakeErasure) -> PurgePlan | None:
        """Plan the deletion, wait for readers, and plan again until nothing has brought rows back meanwhile."""
        records = ErasureRecords(self.store)
        for _ in range(_PLANS):
            plan = records.plan(lake.plan(self.grace))
            self.failpoints.reach(Failpoint.AFTER_PURGE_PLAN)
            not_before = self._not_before(plan)
            if plan.tables and not self._waited_until(not_before):
                return None
            lake.erase()
            # A file that was restored meanwhile was removed again: its readers have a grace of their own.
            if not lake.plan(self.grace).without(plan).tables and self._not_before(plan) == not_before:
                return plan
        raise TransientError(
            f"at each of {_PLANS} attempts a running job had written rows of the players again; nothing was deleted. "
            "Let the streams and the gold job catch up, and run the erasure again"
        )

    def _waited_until(self, moment: datetime) -> bool:
        """Wait until a time; returns False if the wait was interrupted."""
        left = moment - datetime.now(UTC)
        if left <= timedelta(0):
            return True
        log.info("purge_waits", seconds=round(left.total_seconds()), action="then deletes the removed files")
        return self.wait(left)

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
    """The data that a table has of the players: current rows, the files to rewrite, removed files with such rows."""

    table: str
    rows: int
    files: int
    bytes: int
    older_files: int


class ErasureEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The data that an erasure would delete: keys and data in the vault, rows and files of tables, and clones."""

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
