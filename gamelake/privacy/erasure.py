"""Forgets players: their keys and data in the vault at once, on request their rows, and the files that still had them.

Every step may be done again: a run that died is finished by the next one.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from gamelake.model.errors import TransientError
from gamelake.model.failpoints import Failpoint, Failpoints
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
from gamelake.storage.player_rows import PlayerFilter, PlayerTable, count_rows, player_tables, rows_in_file
from gamelake.storage.rewrites import revision_lease
from gamelake.storage.store import Store
from gamelake.storage.table_log import TableLog


def plan_purge(store: Store, run: str, tables: list[PlayerTable], people: PlayerFilter, grace: timedelta) -> PurgePlan:
    """The files that a commit took out of a table, that are still there, and in which one of the people has a row.

    Not only those of this run: an OPTIMIZE, or an earlier erasure, leaves files with the same rows behind.
    """
    newest, planned = 0, []
    for table in tables:
        removed = TableLog.read(store, table.name).removed
        paths = tuple(path for path in sorted(removed) if rows_in_file(store, table, path, people))
        if paths:
            planned.append(PlannedFiles(table=table.name, paths=paths))
            newest = max(newest, *(removed[path] for path in paths))
    not_before = datetime.fromtimestamp(newest / 1000, UTC) + grace
    return PurgePlan(run=run, not_before=not_before, tables=tuple(planned))


log = logging.getLogger(__name__)

_ATTEMPTS, _PAUSE = 45, timedelta(seconds=1)

Wait = Callable[[timedelta], bool]


@dataclass(frozen=True, slots=True)
class PlayerErasure:
    """Carries out erasures in one vault and one lakehouse.

    `wait` waits for a while and gives whether to go on; `grace` is for how long a reader may still need a file.
    """

    vault: Vault
    store: Store
    grace: timedelta
    wait: Wait
    failpoints: Failpoints = field(default_factory=Failpoints)

    def begin(self, request: ErasureRequest) -> None:
        """Write down what is asked for, so that it is done even if this process dies; then destroy keys and data.

        Raises:
            VaultUnavailableError: the vault does not answer.
        """
        ErasureRecords(self.store).begin(request)
        self.failpoints.reach(Failpoint.AFTER_ERASURE_REQUEST)
        self._forget(request)

    def catch_up(self, run: str) -> tuple[str, ...]:
        """Take into the account whom the gateway has forgotten, and finish what other runs than this one have begun.

        Gives the runs that are finished now. The account is what is left if the vault is lost.

        Raises:
            VaultUnavailableError: the vault does not answer.
            TransientError: others were in the way at every attempt.
        """
        records = ErasureRecords(self.store)
        records.adopt(self.vault.erasures_after(0))
        others = [request for request in records.unfinished() if request.run != run]
        return tuple(request.run for request in others if self.carry_out(request) is not None)

    def carry_out(self, request: ErasureRequest) -> ErasureDone | None:
        """Do what was asked for, whatever of it is done already; None if the wait was broken off.

        Raises:
            VaultUnavailableError: the vault does not answer.
            TransientError: others were in the way, of the vault's files or of a table's commit, at every attempt.
        """
        forgotten = self._forget(request)
        self.failpoints.reach(Failpoint.AFTER_FORGETTING)
        people = PlayerFilter(frozenset(request.pseudonyms))
        tables, clones = ([], ()) if request.reach is Reach.VAULT else self._take_rows_out(request, people)
        plan = self._purge(request, tables, people) if request.reach is Reach.FILES else None
        if request.reach is Reach.FILES and plan is None:
            return None
        done = ErasureDone(
            run=request.run,
            finished_at=datetime.now(UTC),
            forgotten=forgotten,
            tables=self._account(request, tables, plan),
            clones=clones,
        )
        ErasureRecords(self.store).finish(done)
        return done

    def _take_rows_out(
        self, request: ErasureRequest, people: PlayerFilter
    ) -> tuple[list[PlayerTable], tuple[str, ...]]:
        """Take the rows of people out; gives the tables that were looked at, and the clones that were dropped."""
        # A replay that has read such rows, and a restore that brings them back, must not come after us.
        with revision_lease(self.store):
            tables = player_tables(self.store)
            for table in tables:
                RowEraser(self.store, table, people, request.run, self.failpoints).erase()
            # After the rows: what is cloned from now on has none of them.
            return tables, self._drop_clones(people)

    def _drop_clones(self, people: PlayerFilter) -> tuple[str, ...]:
        """Drop the clones that have rows of the people; an analyst makes them anew, without."""
        clones = Clones(self.store)
        found = clones.with_rows_of(people)
        for clone in found:
            clones.drop(clone)
            log.info("the clone %s had rows of who is forgotten, and was dropped", clone.name)
        return tuple(clone.name for clone in found)

    def _forget(self, request: ErasureRequest) -> tuple[int, ...]:
        """The vault's numbers of the erasures, also of those that an earlier attempt made."""
        for pseudonym in request.pseudonyms:
            player = self.vault.named(pseudonym)
            if player is not None:
                self.vault.forget(player.token, request.requested_by)
        self._destroy_remains()
        wanted = set(request.pseudonyms)
        return tuple(each.number for each in self.vault.erasures_after(0) if each.pseudonym in wanted)

    def _destroy_remains(self) -> None:
        """See that nothing of a key is left in the database's files, for which others may have to step aside."""
        for _ in range(_ATTEMPTS):
            if self.vault.destroy_remains():
                return
            if not self.wait(_PAUSE):
                break
        raise TransientError("the vault's files still have what was deleted, as others are using them; try again")

    def _purge(self, request: ErasureRequest, tables: list[PlayerTable], people: PlayerFilter) -> PurgePlan | None:
        records = ErasureRecords(self.store)
        plan = records.planned(request.run) or records.plan(
            plan_purge(self.store, request.run, tables, people, self.grace)
        )
        self.failpoints.reach(Failpoint.AFTER_PURGE_PLAN)
        left = plan.not_before - datetime.now(UTC)
        if plan.tables and left > timedelta(0):
            log.info("files that were superseded are deleted in %.0f s", left.total_seconds())
            if not self.wait(left):
                return None
        for table in plan.tables:
            for path in table.paths:
                self.store.delete(f"{table.table}/{path}")
                self.failpoints.reach(Failpoint.AFTER_PURGED_FILE)
        return plan

    def _account(
        self, request: ErasureRequest, tables: list[PlayerTable], plan: PurgePlan | None
    ) -> tuple[ErasedTable, ...]:
        """What the tables' own logs say of the run, so that it is whole also after a kill."""
        purged = {each.table: each.paths for each in plan.tables} if plan else {}
        account = []
        for table in tables:
            ours = [each for each in TableLog.read(self.store, table.name).erasures if each.run == request.run]
            account.append(
                ErasedTable(
                    table=table.name,
                    rows=sum(each.rows for each in ours),
                    versions=tuple(each.version for each in ours),
                    files=sum(each.files for each in ours),
                    purged=purged.get(table.name, ()),
                )
            )
        return tuple(account)


class TableEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a table has of the persons: rows now, their files (to be written anew), older files with such rows."""

    table: str
    rows: int
    files: int
    bytes: int
    older_files: int


class ErasureEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What the vault has of the persons (keys, pieces of data), what the tables have, and which clones would go."""

    keys: int
    sealed_data: int
    tables: tuple[TableEstimate, ...]
    clones: tuple[str, ...] = ()


def estimate_erasure(store: Store, vault: Vault, persons: Sequence[IdentifiedPlayer], reach: Reach) -> ErasureEstimate:
    """Count what an erasure of this reach would take away."""
    people = PlayerFilter(frozenset(person.pseudonym for person in persons))
    stored = [person.stored for person in persons if person.stored is not None]
    tables = [] if reach is Reach.VAULT else player_tables(store)
    return ErasureEstimate(
        keys=len(stored),
        sealed_data=sum(len(vault.data_of(each.pseudonym)) for each in stored),
        tables=tuple(_of_table(store, table, people) for table in tables),
        clones=() if reach is Reach.VAULT else tuple(each.name for each in Clones(store).with_rows_of(people)),
    )


def _of_table(store: Store, table: PlayerTable, people: PlayerFilter) -> TableEstimate:
    found = count_rows(store, table, people)
    removed = TableLog.read(store, table.name).removed
    older = sum(1 for path in removed if rows_in_file(store, table, path, people))
    return TableEstimate(table=table.name, rows=found.rows, files=found.files, bytes=found.bytes, older_files=older)
