"""The record of erasures under `_gamelake/erasures/`: requests, plans and results; without names of players.

Objects are only added, so that an unfinished run is known by its missing result.
"""

import uuid
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from enum import StrEnum
from functools import reduce

import msgspec

from gamelake.objects.records import Records
from gamelake.objects.store import Store
from gamelake.privacy.vault.vault import Erasure

_FOLDER = "_gamelake/erasures"


class Reach(StrEnum):
    """The reach of an erasure: the vault, rows of tables too, or old files too."""

    VAULT = "vault"
    ROWS = "rows"
    FILES = "files"


class ErasureRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request: players and reach; `requested_by` is a role, and `game` is empty for a run over all games."""

    run: str
    requested_at: datetime
    requested_by: str
    game: str
    pseudonyms: tuple[str, ...]
    reach: Reach

    @classmethod
    def new(cls, requested_by: str, game: str, pseudonyms: tuple[str, ...], reach: Reach) -> "ErasureRequest":
        """Create a request with the current time."""
        now = datetime.now(UTC)
        return cls(
            run=f"{now:%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:12]}",
            requested_at=now,
            requested_by=requested_by,
            game=game,
            pseudonyms=pseudonyms,
            reach=reach,
        )


class PlannedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Removed files of one table that have rows of the players."""

    table: str
    paths: tuple[str, ...]


class PurgePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The files to delete, and the earliest moment to do so."""

    run: str
    not_before: datetime
    tables: tuple[PlannedFiles, ...]

    def without(self, earlier: "PurgePlan") -> "PurgePlan":
        """Return the plan without the files that an earlier plan has."""
        known = {(each.table, path) for each in earlier.tables for path in each.paths}
        new = [(each.table, tuple(p for p in each.paths if (each.table, p) not in known)) for each in self.tables]
        tables = tuple(PlannedFiles(table=table, paths=paths) for table, paths in new if paths)
        return PurgePlan(run=self.run, not_before=self.not_before, tables=tables)

    def joined(self, later: "PurgePlan") -> "PurgePlan":
        """Return the plan with the files of a later one, to be deleted when readers need none of either."""
        paths = {each.table: each.paths for each in self.tables}
        for each in later.tables:
            paths[each.table] = (*paths.get(each.table, ()), *each.paths)
        tables = tuple(PlannedFiles(table=table, paths=paths[table]) for table in paths)
        return PurgePlan(run=self.run, not_before=max(self.not_before, later.not_before), tables=tables)


class DeletionBegun(msgspec.Struct, frozen=True, kw_only=True):
    """The note that the planned files of a run may be deleted at any time from now on."""

    run: str


class ErasedTable(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an erasure in one table: deleted rows, its versions, number of rewritten files, purged files."""

    table: str
    rows: int
    versions: tuple[int, ...]
    files: int
    purged: tuple[str, ...] = ()


class LeftFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The number of files of a table that still hold a pseudonym after an erasure."""

    table: str
    files: int


class ErasureDone(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run.

    Attributes:
        forgotten: the numbers of the vault's erasures.
        clones: the dropped ones.
        left: where the search after the erasure still found a pseudonym.
    """

    run: str
    finished_at: datetime
    forgotten: tuple[int, ...]
    tables: tuple[ErasedTable, ...]
    clones: tuple[str, ...] = ()
    left: tuple[LeftFiles, ...] = ()


class ErasureRecords:
    """The records of all erasure runs of a lakehouse."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._requests = Records(store, f"{_FOLDER}/requested", ErasureRequest)
        self._begun = Records(store, f"{_FOLDER}/deleting", DeletionBegun)
        self._results = Records(store, f"{_FOLDER}/done", ErasureDone)

    def _plans(self, run: str) -> Records[PurgePlan]:
        return Records(self._store, f"{_FOLDER}/planned/{run}", PurgePlan)

    def begin(self, request: ErasureRequest) -> None:
        """Record a request, before anything is done."""
        self._requests.add(request.run, request)

    def adopt(self, erasures: Iterable[Erasure]) -> None:
        """Record the erasures of the vault, each once, as requests that are done."""
        done = set(self._results.names())
        for erasure in erasures:
            run = f"{erasure.erased_at:%Y%m%dT%H%M%SZ}-vault-{erasure.number}"
            if run not in done:
                self._adopt(erasure, run)

    def _adopt(self, erasure: Erasure, run: str) -> None:
        self.begin(
            ErasureRequest(
                run=run,
                requested_at=erasure.erased_at,
                requested_by=erasure.erased_by,
                game=erasure.game,
                pseudonyms=(erasure.pseudonym,),
                reach=Reach.VAULT,
            )
        )
        self.finish(ErasureDone(run=run, finished_at=erasure.erased_at, forgotten=(erasure.number,), tables=()))

    def plan(self, plan: PurgePlan) -> PurgePlan:
        """Add a plan to those of the run; returns all of them as one."""
        earlier = self.planned(plan.run)
        new = plan if earlier is None else plan.without(earlier)
        number = 1
        while (earlier is None or new.tables) and not self._plans(plan.run).add(f"{number:06d}", new):
            number += 1
        joined = self.planned(plan.run)
        assert joined is not None  # noqa: S101 # one was put, or was there
        return joined

    def planned(self, run: str) -> PurgePlan | None:
        """Return all plans of a run as one, None if it has none."""
        plans = self._plans(run).all()
        return reduce(PurgePlan.joined, plans) if plans else None

    def begin_deletion(self, run: str) -> None:
        """Record that the planned files of a run are deleted next."""
        self._begun.add(run, DeletionBegun(run=run))

    def being_deleted(self, table: str) -> frozenset[str]:
        """Return the files of a table, under its folder, that unfinished runs have begun to delete."""
        # In this order: a run that begins to delete between the listings counts.
        done = set(self._results.names())
        plans = [self.planned(run) for run in self._begun.names() if run not in done]
        planned = (each for plan in plans if plan for each in plan.tables)
        return frozenset(path for each in planned if each.table == table for path in each.paths)

    def finish(self, done: ErasureDone) -> None:
        """Record the result of a run."""
        self._results.add(done.run, done)

    def requests(self) -> list[ErasureRequest]:
        """Return all requests, oldest first."""
        return self._requests.all()

    def erased_pseudonyms(self) -> frozenset[str]:
        """Return the players whose rows were to be deleted, done or not."""
        requests = (each for each in self.requests() if each.reach is not Reach.VAULT)
        return frozenset(pseudonym for each in requests for pseudonym in each.pseudonyms)

    def requested_after(self, moment: datetime) -> list[ErasureRequest]:
        """Return the requests since a moment; on an object store only these are listed."""
        names = self._requests.names(after=f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}")
        return list(self._requests.read_many(names))

    def requested_since(self, known: Collection[str]) -> dict[str, ErasureRequest]:
        """Return the requests by run, except the known runs."""
        new = [run for run in self._requests.names() if run not in known]
        return {request.run: request for request in self._requests.read_many(new)}

    def unfinished(self) -> list[ErasureRequest]:
        """Return the requests without a result."""
        done = set(self._results.names())
        return list(self._requests.read_many(run for run in self._requests.names() if run not in done))
