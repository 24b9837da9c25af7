"""The record of erasures under `_gamelake/erasures/`: requests, plans and results; without names of players.

Objects are only added, so that an unfinished run is known by its missing result.
"""

import uuid
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from enum import StrEnum

import msgspec

from gamelake.privacy.vault.vault import Erasure
from gamelake.storage.store import Store

_FOLDER = "_gamelake/erasures"
_REQUESTED, _PURGE, _DELETING, _DONE = ".requested.json", ".purge.json", ".deleting.json", ".done.json"


class Reach(StrEnum):
    """How far an erasure reaches: the vault, rows of tables too, or old files too."""

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
        """A new request with the current time."""
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


class DeletionBegun(msgspec.Struct, frozen=True, kw_only=True):
    """The note that the planned files of a run may be deleted at any time from now on."""

    run: str


class ErasedTable(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure deleted in one table: rows, its versions, the number of rewritten files, the purged files."""

    table: str
    rows: int
    versions: tuple[int, ...]
    files: int
    purged: tuple[str, ...] = ()


class ErasureDone(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run; `forgotten` are the numbers of the vault's erasures, `clones` the dropped ones."""

    run: str
    finished_at: datetime
    forgotten: tuple[int, ...]
    tables: tuple[ErasedTable, ...]
    clones: tuple[str, ...] = ()


class ErasureRecords:
    """The records of all erasure runs of a lakehouse."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, request: ErasureRequest) -> None:
        """Record a request, before anything is done."""
        self._put(f"{request.run}{_REQUESTED}", request)

    def adopt(self, erasures: Iterable[Erasure]) -> None:
        """Record the erasures of the vault, each once, as requests that are done."""
        there = set(self._store.paths(_FOLDER))
        for erasure in erasures:
            run = f"{erasure.erased_at:%Y%m%dT%H%M%SZ}-vault-{erasure.number}"
            if f"{_FOLDER}/{run}{_DONE}" not in there:
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
        """Record the plan, or return that of an earlier attempt."""
        self._put(f"{plan.run}{_PURGE}", plan)
        standing = self.planned(plan.run)
        assert standing is not None  # noqa: S101 # it was put, or was there
        return standing

    def planned(self, run: str) -> PurgePlan | None:
        """The plan of a run, None if it has none."""
        content = self._store.get(f"{_FOLDER}/{run}{_PURGE}")
        return None if content is None else msgspec.json.decode(content, type=PurgePlan)

    def begin_deletion(self, run: str) -> None:
        """Record that the planned files of a run are deleted next."""
        self._put(f"{run}{_DELETING}", DeletionBegun(run=run))

    def being_deleted(self, table: str) -> frozenset[str]:
        """The files of a table, under its folder, that unfinished runs may delete at any time: they have begun to."""
        runs = {kind: self._runs(kind) for kind in (_DELETING, _DONE)}
        plans = [self.planned(run) for run in sorted(runs[_DELETING] - runs[_DONE])]
        planned = (each for plan in plans if plan for each in plan.tables)
        return frozenset(path for each in planned if each.table == table for path in each.paths)

    def _runs(self, kind: str) -> set[str]:
        names = (path.rsplit("/", 1)[-1] for path in self._store.paths(_FOLDER))
        return {name.removesuffix(kind) for name in names if name.endswith(kind)}

    def finish(self, done: ErasureDone) -> None:
        """Record the result of a run."""
        self._put(f"{done.run}{_DONE}", done)

    def requests(self) -> list[ErasureRequest]:
        """All requests, oldest first."""
        return [self._read(path) for path in self._store.paths(_FOLDER) if path.endswith(_REQUESTED)]

    def requested_since(self, known: Collection[str]) -> dict[str, ErasureRequest]:
        """The requests by run, except the known runs."""
        paths = (path for path in self._store.paths(_FOLDER) if path.endswith(_REQUESTED))
        runs = {path.rsplit("/", 1)[-1].removesuffix(_REQUESTED): path for path in paths}
        return {run: self._read(path) for run, path in runs.items() if run not in known}

    def unfinished(self) -> list[ErasureRequest]:
        """The requests without a result."""
        paths = self._store.paths(_FOLDER)
        done = {path.removesuffix(_DONE) for path in paths if path.endswith(_DONE)}
        asked = [path for path in paths if path.endswith(_REQUESTED)]
        return [self._read(path) for path in asked if path.removesuffix(_REQUESTED) not in done]

    def _read(self, path: str) -> ErasureRequest:
        return msgspec.json.decode(self._store.get(path) or b"", type=ErasureRequest)

    def _put(self, name: str, content: msgspec.Struct) -> None:
        self._store.put_new(f"{_FOLDER}/{name}", msgspec.json.format(msgspec.json.encode(content)))
