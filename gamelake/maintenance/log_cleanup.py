"""Log cleanup: deletes old log entries, manifests, Spark checkpoints and claims of leases.

Log entries and manifests are first compacted into a log checkpoint and a manifest checkpoint. Entries are deleted only
up to a Delta checkpoint that names the same files as the entries, and only up to the version of the slowest reader.

Entries and manifests within the retention are also compacted, day by day, into separate checkpoints, and are kept.
Source: Delta Transaction Log Protocol, headings "Checkpoints" and "Delta Log Entries" (log compaction and clean-up).
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from urllib.parse import unquote

import msgspec
import pyarrow.parquet as pq

from gamelake.delta.listing import stream_names
from gamelake.delta.log.codec import LOG_FOLDER
from gamelake.delta.log.history_checkpoints import LogCheckpoint, LoggedFile, read_log_checkpoint, write_log_checkpoint
from gamelake.delta.log.table_features import CHECKPOINT_PROTECTION, TableDemands
from gamelake.delta.rewrites import maintenance_lease
from gamelake.delta.tables import open_table
from gamelake.ledger.generations import Generations
from gamelake.ledger.manifest_checkpoints import (
    ManifestCheckpoint,
    read_manifest_checkpoint,
    read_newest_manifest_checkpoint,
    write_manifest_checkpoint,
)
from gamelake.maintenance.manifest_compaction import ManifestCompaction, compact_log
from gamelake.model.naming import Horizon
from gamelake.objects.store import Store, StoredObject

# More than the circuit breaker, the telemetry or a restart ever reads.
KEPT_MANIFESTS = 1_000
_ENTRY = re.compile(r"(\d{20})\.(json|crc)")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_OF_A_VERSION = re.compile(r"(\d{20})\.")
_LEASES = "_gamelake/leases"


class CleanupResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the cleanup of one table, stream or folder, or of its dry run.

    Attributes:
        what: the table, stream or folder.
        deleted_files: number of deleted objects.
        bytes: size of the deleted objects.
        kept: the reason why old objects were kept; empty if none were.
    """

    what: str
    deleted_files: int = 0
    bytes: int = 0
    kept: str = ""


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """The plan for the cleanup of one table, stream or folder.

    Attributes:
        what: the table, stream or folder.
        files: the objects to delete, oldest first.
        kept: the reason why old objects are kept; empty if none are.
        table: the log checkpoint to write first; None for none.
        stream: the manifest checkpoint to write first; None for none.
        horizon: which of the two checkpoints of the table or stream that is.
    """

    what: str
    files: Sequence[StoredObject]
    kept: str = ""
    table: LogCheckpoint | None = None
    stream: ManifestCheckpoint | None = None
    horizon: Horizon = Horizon.RETENTION

    def account(self) -> CleanupResult:
        """Return the result of carrying out the plan."""
        size = sum(each.size for each in self.files)
        return CleanupResult(what=self.what, deleted_files=len(self.files), bytes=size, kept=self.kept)

    def carry_out(self, store: Store) -> CleanupResult:
        """Write the checkpoint, then delete the objects that it covers, the oldest portion first."""
        if self.table is not None:
            self._carry_out_of_table(store, self.table)
        else:
            stream = self.stream
            if stream is not None and stream != read_manifest_checkpoint(store, stream.stream, self.horizon):
                write_manifest_checkpoint(store, stream, self.horizon)
            self._delete(store)
        return self.account()

    def _carry_out_of_table(self, store: Store, checkpoint: LogCheckpoint) -> None:
        if not self.files and checkpoint == read_log_checkpoint(store, checkpoint.table, self.horizon):
            return
        with maintenance_lease(store, checkpoint.table):
            write_log_checkpoint(store, checkpoint, self.horizon)
            self._delete(store)

    def _delete(self, store: Store) -> None:
        store.delete_all(each.path for each in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleanup:
    """Plans the log cleanup of a lakehouse.

    Attributes:
        store: the store of the lakehouse.
        since: older history is deleted.
        compact_before: history before this moment is compacted, and kept until it is older than `since`.
        needed_from: for each table that gold or the KPIs read, the version that the slowest reader has read.
        keep_manifests: the number of newest manifests of a stream that are kept, however old they are.
    """

    store: Store
    since: datetime
    compact_before: datetime | None = None
    needed_from: Mapping[str, int] = field(default_factory=dict)
    keep_manifests: int = KEPT_MANIFESTS

    def plans(self, tables: Iterable[str]) -> Iterator[CleanupPlan]:
        """Yield all plans in the order of execution: tables, then streams, which rely on the tables' checkpoints."""
        names, appended = list(tables), dict[str, Sequence[LoggedFile]]()
        checkpoints = self._manifest_checkpoints(read_manifest_checkpoint)
        for table in names:
            plan = self.log_of(table, checkpoints)
            if plan is not None and plan.table is not None:
                # Not the whole checkpoint: with live files, the checkpoints of all tables would need too much memory.
                appended[table] = plan.table.appended
                yield plan
        for stream in stream_names(self.store):
            yield from self.manifests_of(ManifestCompaction.of(self.store, stream, appended, Horizon.RETENTION))
            yield from self.checkpoints_of(stream)
        if self.compact_before is not None:
            appended.clear()
            yield from self._compact_day(names, self.compact_before)
        yield from self.claims()

    def _compact_day(self, tables: Iterable[str], before: datetime) -> Iterator[CleanupPlan]:
        """Plan to compact the history up to a moment, without deleting any."""
        # The newest of both horizons: with few batches, all that may be compacted are older than the retention.
        checkpoints = self._manifest_checkpoints(read_newest_manifest_checkpoint)
        appended = dict[str, Sequence[LoggedFile]]()
        for table in tables:
            log = compact_log(self.store, table, before, checkpoints, horizon=Horizon.DAY)
            if log is not None:
                checkpoint = self._without_vacuumed(log.checkpoint)
                appended[table] = checkpoint.appended
                yield CleanupPlan(table, (), table=checkpoint, horizon=Horizon.DAY)
        for stream in stream_names(self.store):
            compaction = ManifestCompaction.of(self.store, stream, appended, Horizon.DAY)
            compacted = compaction.compact(before, self.keep_manifests)
            if compacted is not None:
                yield CleanupPlan(f"manifests of {stream}", (), stream=compacted, horizon=Horizon.DAY)

    def _manifest_checkpoints(
        self, read: Callable[[Store, str], ManifestCheckpoint | None]
    ) -> list[ManifestCheckpoint]:
        found = (read(self.store, stream) for stream in stream_names(self.store))
        return [each for each in found if each is not None]

    def log_of(self, table: str, compacted: Sequence[ManifestCheckpoint]) -> CleanupPlan | None:
        """Plan the cleanup of a table's log: delete entries before the newest Delta checkpoint that is old enough.

        Args:
            table: path of the table.
            compacted: the streams' manifest checkpoints.

        Returns:
            The plan; None if no entry is old enough.
        """
        folder, needed = f"{table}/{LOG_FOLDER}", self.needed_from.get(table)
        names = (_CHECKPOINT.fullmatch(_name(each.path)) for each in self.store.objects(folder))
        delta_checkpoints = {int(match[1]) for match in names if match}
        versions = (each for each in delta_checkpoints if needed is None or each <= needed)
        log = compact_log(self.store, table, self.since, compacted, versions)
        if log is None:
            return None
        checkpoint, base = self._without_vacuumed(log.checkpoint), log.base
        if base is None:
            return CleanupPlan(table, (), table=checkpoint)
        if self._files_of(f"{folder}/{base:020d}.checkpoint.parquet") != log.live_at_base:
            reason = f"the Delta checkpoint of version {base} names other files than the entries: nothing is deleted"
            return CleanupPlan(table, (), kept=reason, table=checkpoint)
        # Only the objects to delete: those of weeks would take much memory.
        old = [
            each
            for each in self.store.objects(folder)
            if (match := _OF_A_VERSION.match(_name(each.path))) and int(match[1]) < base
        ]
        old.sort(key=lambda each: each.path)
        if old and CHECKPOINT_PROTECTION in TableDemands.of(open_table(self.store.location, table)).features:
            reason = f"{CHECKPOINT_PROTECTION} of its protocol keeps the entries: nothing is deleted"
            return CleanupPlan(table, (), kept=reason, table=checkpoint)
        behind = needed is not None and needed < checkpoint.version
        reason = f"its slowest reader has only read version {needed}" if behind else ""
        return CleanupPlan(table, old, kept=reason, table=checkpoint)

    def _without_vacuumed(self, checkpoint: LogCheckpoint) -> LogCheckpoint:
        """Drop the removed files that vacuum has deleted, which no restore can use."""
        # The listing is streamed, because it also contains all files that were written since.
        there = self.store.objects(checkpoint.table) if checkpoint.removed else ()
        existing = (each.path.removeprefix(f"{checkpoint.table}/") for each in there)
        removed = {path: checkpoint.removed[path] for path in existing if path in checkpoint.removed}
        return msgspec.structs.replace(checkpoint, removed=removed)

    def manifests_of(self, compaction: ManifestCompaction) -> Iterator[CleanupPlan]:
        """Plan the deletion of a stream's manifests that its manifest checkpoint covers, or will cover."""
        checkpoint = compaction.compact(self.since, self.keep_manifests)
        checkpoint = checkpoint or read_manifest_checkpoint(self.store, compaction.stream)
        if checkpoint is None:
            return
        folder = f"_gamelake/streams/{compaction.stream}/manifests"
        old = [each for each in self.store.objects(folder) if _number(each.path) <= checkpoint.through]
        old.sort(key=lambda each: each.path)
        yield CleanupPlan(f"manifests of {compaction.stream}", old, stream=checkpoint)

    def checkpoints_of(self, stream: str) -> Iterator[CleanupPlan]:
        """Plan the deletion of Spark checkpoints whose generations ended before `since`."""
        generations = Generations(self.store, stream).all()
        superseded = [
            former for former, after in pairwise(generations) if datetime.fromisoformat(after.created_at) < self.since
        ]
        files = [each for former in superseded for each in self.store.objects(former.checkpoint)]
        if files:
            yield CleanupPlan(f"old checkpoints of {stream}", files)

    def claims(self) -> Iterator[CleanupPlan]:
        """Plan the deletion of old lease claims that a later claim has replaced; killed holders leave them behind."""
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

    def _files_of(self, checkpoint: str) -> frozenset[str] | None:
        """Return the paths of the files that a Delta checkpoint names; None if it no longer exists."""
        content = self.store.get(checkpoint)
        if content is None:
            return None
        adds = pq.read_table(io.BytesIO(content), columns=["add"])["add"].to_pylist()
        return frozenset(unquote(add["path"]) for add in adds if add is not None)


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _number(path: str) -> int:
    return int(_name(path).split(".", 1)[0])
