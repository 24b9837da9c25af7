"""Removes what nobody needs any more beside the tables' files: old log entries, manifests, checkpoints and claims.

Log entries and manifests are folded into statements first. Entries go only up to a checkpoint of Delta's whose files
are those that the entries come to, and only as far as everybody has read who follows them.
Source: Delta Transaction Log Protocol, headings "Checkpoints" and "Delta Log Entries" (log compaction and clean-up).
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from urllib.parse import unquote

import msgspec
import pyarrow.parquet as pq

from gamelake.maintenance.manifest_compaction import CompactedLog, ManifestCompaction, compact_log
from gamelake.storage.delta_log import LOG_FOLDER
from gamelake.storage.generations import Generations
from gamelake.storage.manifest_checkpoints import (
    LogCheckpoint,
    ManifestCheckpoint,
    read_log_checkpoint,
    read_manifest_checkpoint,
    write_log_checkpoint,
    write_manifest_checkpoint,
)
from gamelake.storage.rewrites import maintenance_lease
from gamelake.storage.store import Store, StoredObject

# Nobody has ever looked back further for the breaker, the telemetry or a hot start.
KEPT_MANIFESTS = 1_000
_ENTRY = re.compile(r"(\d{20})\.(json|crc)")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_OF_A_VERSION = re.compile(r"(\d{20})\.")
_LEASES = "_gamelake/leases"


class CleanupResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed, or would be, of one table, stream or folder; `kept` says why something old had to stay."""

    what: str
    deleted_files: int = 0
    bytes: int = 0
    kept: str = ""


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """What may go of one thing, and what must be written before."""

    what: str
    files: Sequence[StoredObject]
    kept: str = ""
    table: CompactedLog | None = None
    stream: ManifestCheckpoint | None = None

    def account(self) -> CleanupResult:
        """What carrying it out removes."""
        size = sum(each.size for each in self.files)
        return CleanupResult(what=self.what, deleted_files=len(self.files), bytes=size, kept=self.kept)

    def carry_out(self, store: Store) -> CleanupResult:
        """Write the statement, then remove what it stands for, oldest first: what is left is whole at every moment."""
        if self.table is not None:
            self._carry_out_of_table(store, self.table.statement)
        else:
            if self.stream is not None and self.stream != read_manifest_checkpoint(store, self.stream.stream):
                write_manifest_checkpoint(store, self.stream)
            self._remove(store)
        return self.account()

    def _carry_out_of_table(self, store: Store, statement: LogCheckpoint) -> None:
        if not self.files and statement == read_log_checkpoint(store, statement.table):
            return
        with maintenance_lease(store, statement.table):
            write_log_checkpoint(store, statement)
            self._remove(store)

    def _remove(self, store: Store) -> None:
        for each in self.files:
            store.delete(each.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleanup:
    """A lakehouse, and since when its history is kept.

    Attributes:
        needed_from: of tables that somebody follows, the version that the slowest has come to.
    """

    store: Store
    since: datetime
    needed_from: Mapping[str, int] = field(default_factory=dict)
    keep_manifests: int = KEPT_MANIFESTS

    def plans(self, tables: Iterable[str]) -> Iterator[CleanupPlan]:
        """All that may go, in the order in which it must: tables, then streams, which rest on their statements."""
        statements = [
            each for stream in self._streams() if (each := read_manifest_checkpoint(self.store, stream)) is not None
        ]
        folds = []
        for table in tables:
            plan = self.log_of(table, statements)
            if plan is not None:
                folds.append(plan)
                yield plan
        known = {plan.table.statement.table: plan.table.statement for plan in folds if plan.table is not None}
        for stream in self._streams():
            yield from self.manifests_of(ManifestCompaction.of(self.store, stream, known.values()))
            yield from self.checkpoints_of(stream)
        yield from self.claims()

    def log_of(self, table: str, folded: Sequence[ManifestCheckpoint]) -> CleanupPlan | None:
        """What stands in a table's log before the newest checkpoint that is old enough; None if nothing is old."""
        there = sorted(self.store.objects(f"{table}/{LOG_FOLDER}"), key=lambda each: each.path)
        checkpoints = {int(match[1]): each for each in there if (match := _CHECKPOINT.fullmatch(_name(each.path)))}
        fold = compact_log(self.store, table, self.since, folded, checkpoints)
        if fold is None:
            return None
        fold = self._without_what_is_gone(fold)
        furthest = min(fold.statement.version, self.needed_from.get(table, fold.statement.version))
        usable = [version for version in fold.live_at if version in checkpoints and version <= furthest]
        if not usable:
            return CleanupPlan(table, (), table=fold)
        version = max(usable)
        if self._files_of(checkpoints[version].path) != fold.live_at[version]:
            told = f"its checkpoint of version {version} has other files than its entries come to: nothing goes"
            return CleanupPlan(table, (), kept=told, table=fold)
        old = [each for each in there if (match := _OF_A_VERSION.match(_name(each.path))) and int(match[1]) < version]
        behind = furthest < fold.statement.version
        told = f"whoever follows it has only come to version {furthest}" if behind else ""
        return CleanupPlan(table, old, kept=told, table=fold)

    def _without_what_is_gone(self, fold: CompactedLog) -> CompactedLog:
        """Forget removed files that vacuum has deleted, which nothing can bring back."""
        statement = fold.statement
        there = set(self.store.paths(statement.table)) if statement.removed else set()
        removed = {path: at for path, at in statement.removed.items() if f"{statement.table}/{path}" in there}
        return CompactedLog(msgspec.structs.replace(statement, removed=removed), fold.live_at)

    def manifests_of(self, fold: ManifestCompaction) -> Iterator[CleanupPlan]:
        """The manifests of a stream that its statement stands for, or will."""
        statement = fold.fold(self.since, self.keep_manifests) or read_manifest_checkpoint(self.store, fold.stream)
        if statement is None:
            return
        folder = f"_gamelake/streams/{fold.stream}/manifests"
        old = [each for each in self.store.objects(folder) if _number(each.path) <= statement.through]
        yield CleanupPlan(f"manifests of {fold.stream}", sorted(old, key=lambda each: each.path), stream=statement)

    def checkpoints_of(self, stream: str) -> Iterator[CleanupPlan]:
        """Spark's checkpoints of generations that another has followed, longer ago than history is kept."""
        generations = Generations(self.store, stream).all()
        over = [
            former for former, after in pairwise(generations) if datetime.fromisoformat(after.created_at) < self.since
        ]
        files = [each for former in over for each in self.store.objects(former.checkpoint)]
        if files:
            yield CleanupPlan(f"old checkpoints of {stream}", files)

    def claims(self) -> Iterator[CleanupPlan]:
        """Claims of leases that another has followed, left by holders that were killed."""
        newest: dict[str, int] = {}
        there = list(self.store.objects(_LEASES))
        for each in there:
            folder = each.path.rsplit("/", 1)[0]
            newest[folder] = max(newest.get(folder, 0), _number(each.path))
        old = [
            each
            for each in there
            if _number(each.path) < newest[each.path.rsplit("/", 1)[0]] and each.written_at < self.since
        ]
        if old:
            yield CleanupPlan("claims of leases", old)

    def _streams(self) -> list[str]:
        return [folder.rstrip("/").rsplit("/", 1)[-1] for folder in self.store.folders("_gamelake/streams")]

    def _files_of(self, checkpoint: str) -> frozenset[str] | None:
        """The files that a checkpoint of Delta's names; None if it is gone."""
        content = self.store.get(checkpoint)
        if content is None:
            return None
        adds = pq.read_table(io.BytesIO(content), columns=["add"])["add"].to_pylist()
        return frozenset(unquote(add["path"]) for add in adds if add is not None)


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _number(path: str) -> int:
    return int(_name(path).split(".", 1)[0])
