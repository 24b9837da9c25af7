"""Log cleanup: deletes old log entries, manifests, Spark checkpoints and claims of leases.

Log entries and manifests are first compacted into a log checkpoint and a manifest checkpoint. Entries are deleted only
up to a Delta checkpoint that names the same files as the entries, and only as far as all their readers have read.
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
from gamelake.storage.table_features import CHECKPOINT_PROTECTION, TableDemands
from gamelake.storage.tables import open_table

# More than the circuit breaker, the telemetry and a restart ever read.
KEPT_MANIFESTS = 1_000
_ENTRY = re.compile(r"(\d{20})\.(json|crc)")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_OF_A_VERSION = re.compile(r"(\d{20})\.")
_LEASES = "_gamelake/leases"


class CleanupResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted, or would be, of one table, stream or folder; `kept` says why something old had to stay."""

    what: str
    deleted_files: int = 0
    bytes: int = 0
    kept: str = ""


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """Objects of one table, stream or folder to delete, and the checkpoint to write first."""

    what: str
    files: Sequence[StoredObject]
    kept: str = ""
    table: CompactedLog | None = None
    stream: ManifestCheckpoint | None = None

    def account(self) -> CleanupResult:
        """The result of carrying the plan out."""
        size = sum(each.size for each in self.files)
        return CleanupResult(what=self.what, deleted_files=len(self.files), bytes=size, kept=self.kept)

    def carry_out(self, store: Store) -> CleanupResult:
        """Write the checkpoint, then delete what it covers, oldest first: the rest is complete at every moment."""
        if self.table is not None:
            self._carry_out_of_table(store, self.table.checkpoint)
        else:
            if self.stream is not None and self.stream != read_manifest_checkpoint(store, self.stream.stream):
                write_manifest_checkpoint(store, self.stream)
            self._delete(store)
        return self.account()

    def _carry_out_of_table(self, store: Store, checkpoint: LogCheckpoint) -> None:
        if not self.files and checkpoint == read_log_checkpoint(store, checkpoint.table):
            return
        with maintenance_lease(store, checkpoint.table):
            write_log_checkpoint(store, checkpoint)
            self._delete(store)

    def _delete(self, store: Store) -> None:
        for each in self.files:
            store.delete(each.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleanup:
    """Plans the log cleanup of a lakehouse.

    Attributes:
        since: older history is deleted.
        needed_from: by table that gold or the key figures read, the version that the slowest reader has read.
        keep_manifests: how many manifests of a stream stay, however old they are.
    """

    store: Store
    since: datetime
    needed_from: Mapping[str, int] = field(default_factory=dict)
    keep_manifests: int = KEPT_MANIFESTS

    def plans(self, tables: Iterable[str]) -> Iterator[CleanupPlan]:
        """All plans, in the order of execution: tables, then streams, which rely on the tables' checkpoints."""
        checkpoints = [
            each for stream in self._streams() if (each := read_manifest_checkpoint(self.store, stream)) is not None
        ]
        compacted = []
        for table in tables:
            plan = self.log_of(table, checkpoints)
            if plan is not None:
                compacted.append(plan)
                yield plan
        known = {plan.table.checkpoint.table: plan.table.checkpoint for plan in compacted if plan.table is not None}
        for stream in self._streams():
            yield from self.manifests_of(ManifestCompaction.of(self.store, stream, known.values()))
            yield from self.checkpoints_of(stream)
        yield from self.claims()

    def log_of(self, table: str, compacted: Sequence[ManifestCheckpoint]) -> CleanupPlan | None:
        """The entries of a table before the newest Delta checkpoint that is old enough; None if no entry is old."""
        found = sorted(self.store.objects(f"{table}/{LOG_FOLDER}"), key=lambda each: each.path)
        delta_checkpoints = {
            int(match[1]): each for each in found if (match := _CHECKPOINT.fullmatch(_name(each.path)))
        }
        log = compact_log(self.store, table, self.since, compacted, delta_checkpoints)
        if log is None:
            return None
        log = self._without_vacuumed(log)
        furthest = min(log.checkpoint.version, self.needed_from.get(table, log.checkpoint.version))
        usable = [version for version in log.live_at if version in delta_checkpoints and version <= furthest]
        if not usable:
            return CleanupPlan(table, (), table=log)
        version = max(usable)
        if self._files_of(delta_checkpoints[version].path) != log.live_at[version]:
            reason = f"the Delta checkpoint of version {version} names other files than the entries: nothing is deleted"
            return CleanupPlan(table, (), kept=reason, table=log)
        old = [each for each in found if (match := _OF_A_VERSION.match(_name(each.path))) and int(match[1]) < version]
        if old and CHECKPOINT_PROTECTION in TableDemands.of(open_table(self.store.location, table)).features:
            reason = f"{CHECKPOINT_PROTECTION} of its protocol keeps the entries: nothing is deleted"
            return CleanupPlan(table, (), kept=reason, table=log)
        behind = furthest < log.checkpoint.version
        reason = f"its slowest reader has only read version {furthest}" if behind else ""
        return CleanupPlan(table, old, kept=reason, table=log)

    def _without_vacuumed(self, log: CompactedLog) -> CompactedLog:
        """Drop the removed files that vacuum has deleted, which no restore can use."""
        checkpoint = log.checkpoint
        # The listing is streamed: it also has each file that was written since.
        there = self.store.objects(checkpoint.table) if checkpoint.removed else ()
        existing = (each.path.removeprefix(f"{checkpoint.table}/") for each in there)
        removed = {path: checkpoint.removed[path] for path in existing if path in checkpoint.removed}
        return CompactedLog(msgspec.structs.replace(checkpoint, removed=removed), log.live_at)

    def manifests_of(self, compaction: ManifestCompaction) -> Iterator[CleanupPlan]:
        """The manifests of a stream that its manifest checkpoint covers, or will cover."""
        checkpoint = compaction.compact(self.since, self.keep_manifests)
        checkpoint = checkpoint or read_manifest_checkpoint(self.store, compaction.stream)
        if checkpoint is None:
            return
        folder = f"_gamelake/streams/{compaction.stream}/manifests"
        old = [each for each in self.store.objects(folder) if _number(each.path) <= checkpoint.through]
        old.sort(key=lambda each: each.path)
        yield CleanupPlan(f"manifests of {compaction.stream}", old, stream=checkpoint)

    def checkpoints_of(self, stream: str) -> Iterator[CleanupPlan]:
        """Spark checkpoints of former generations, superseded before the retention."""
        generations = Generations(self.store, stream).all()
        superseded = [
            former for former, after in pairwise(generations) if datetime.fromisoformat(after.created_at) < self.since
        ]
        files = [each for former in superseded for each in self.store.objects(former.checkpoint)]
        if files:
            yield CleanupPlan(f"old checkpoints of {stream}", files)

    def claims(self) -> Iterator[CleanupPlan]:
        """Old claims of leases that a later claim has replaced, left by holders that were killed."""
        newest: dict[str, int] = {}
        claims = list(self.store.objects(_LEASES))
        for each in claims:
            folder = each.path.rsplit("/", 1)[0]
            newest[folder] = max(newest.get(folder, 0), _number(each.path))
        old = [
            each
            for each in claims
            if _number(each.path) < newest[each.path.rsplit("/", 1)[0]] and each.written_at < self.since
        ]
        if old:
            yield CleanupPlan("claims of leases", old)

    def _streams(self) -> list[str]:
        return [folder.rstrip("/").rsplit("/", 1)[-1] for folder in self.store.folders("_gamelake/streams")]

    def _files_of(self, checkpoint: str) -> frozenset[str] | None:
        """The files that a Delta checkpoint names; None if it is gone."""
        content = self.store.get(checkpoint)
        if content is None:
            return None
        adds = pq.read_table(io.BytesIO(content), columns=["add"])["add"].to_pylist()
        return frozenset(unquote(add["path"]) for add in adds if add is not None)


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _number(path: str) -> int:
    return int(_name(path).split(".", 1)[0])
