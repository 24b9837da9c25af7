"""Compacts tables' oldest log entries into log checkpoints, and streams' oldest manifests into manifest checkpoints.

A manifest is compacted if each of its files is once in its table's log checkpoint, under the manifest's transaction. A
manifest that does not reconcile is never compacted, so that reconciliation continues to report it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

import msgspec

from gamelake.delta.log.codec import Action, commit_info_of, decode_entry, entries_after
from gamelake.delta.log.history_checkpoints import (
    LogCheckpoint,
    LoggedFile,
    digest_of,
    read_log_checkpoint,
    read_newest_log_checkpoint,
)
from gamelake.delta.log.table_log import TableLog
from gamelake.ledger.manifest_checkpoints import (
    ManifestCheckpoint,
    TopicOffsets,
    read_manifest_checkpoint,
    read_newest_manifest_checkpoint,
)
from gamelake.ledger.manifests import BatchManifest, Manifests, OffsetRange
from gamelake.ledger.reconciliation import batch_problems, without_compacted
from gamelake.model.naming import Horizon, events_folder
from gamelake.objects.store import Store

_MANIFESTS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class CompactedLog:
    """The log of a table up to a version.

    Attributes:
        checkpoint: the log checkpoint of the version.
        base: the newest of the requested versions that is not newer; None if there is none.
        live_at_base: paths of the files that were live at `base`.
    """

    checkpoint: LogCheckpoint
    base: int | None = None
    live_at_base: frozenset[str] = frozenset()


def compact_log(
    store: Store,
    table: str,
    before: datetime,
    compacted: Iterable[ManifestCheckpoint],
    versions: Iterable[int] = (),
    horizon: Horizon = Horizon.RETENTION,
) -> CompactedLog | None:
    """Compact the log of a table up to the last version that was committed before a moment.

    Memory grows with the number of live files, and of removed files that are not vacuumed.

    Args:
        store: the store of the lakehouse.
        table: path of the table.
        before: only older entries are compacted.
        compacted: the streams' manifest checkpoints; files of their batches are no longer listed as appended.
        versions: candidates for `CompactedLog.base`.
        horizon: which of the table's two log checkpoints is extended.

    Returns:
        The compacted log; None if no entry is older, or the table has no log.
    """
    # The entries that the other checkpoint covers may be deleted already.
    read = read_newest_log_checkpoint if horizon is Horizon.DAY else read_log_checkpoint
    former, wanted = read(store, table), set(versions)
    log = TableLog.of(former) if former else TableLog()
    version, at = (former.version, former.at) if former else (-1, 0)
    base = version if version in wanted else None
    live_at_base = frozenset(log.live) if base is not None else frozenset()
    content = b""
    for following, entry in entries_after(store, table, version):
        if following != version + 1:
            break
        actions = decode_entry(entry)
        committed = _committed_at(actions, at)
        if committed >= before.timestamp() * 1000:
            break
        version, at, content = following, committed, entry
        log.take(version, actions)
        if version in wanted:
            base, live_at_base = version, frozenset(log.live)
    if former is None and version < 0:
        return None
    log.compacted_through = version
    digest = digest_of(content) if content else former.entry if former else ""
    checkpoint = LogCheckpoint(
        table=table,
        version=version,
        at=at,
        entry=digest,
        adds=tuple(log.adds.values()),
        live=tuple(log.live[path] for path in log.adds),
        appended=tuple(without_compacted(log, compacted)),
        removed=log.removed,
        erasures=tuple(log.erasures),
        schema=log.schema,
        upgrade=log.upgrade,
    )
    return CompactedLog(checkpoint, base, live_at_base)


@dataclass(frozen=True, slots=True)
class ManifestCompaction:
    """Compacts the manifests of one stream.

    Attributes:
        store: the store of the lakehouse.
        stream: name of the stream.
        appended: the appended files of the log checkpoints, by table and path.
        horizon: which of the stream's two manifest checkpoints is extended.
    """

    store: Store
    stream: str
    appended: dict[str, dict[str, list[LoggedFile]]]
    horizon: Horizon = Horizon.RETENTION

    @classmethod
    def of(
        cls, store: Store, stream: str, appended: Mapping[str, Iterable[LoggedFile]], horizon: Horizon
    ) -> "ManifestCompaction":
        """Index the files of the tables' log checkpoints (`LogCheckpoint.appended`), by table."""
        indexed: dict[str, dict[str, list[LoggedFile]]] = {}
        for table, files in appended.items():
            of_table = indexed.setdefault(table, {})
            for file in files:
                of_table.setdefault(file.path, []).append(file)
        return cls(store, stream, indexed, horizon)

    def compact(self, before: datetime, keep: int) -> ManifestCheckpoint | None:
        """Add the oldest batches to the manifest checkpoint, and return it; None if there are no batches to add.

        Args:
            before: manifests that were written at this moment or later are not compacted.
            keep: the number of newest manifests that are not compacted, however old they are.
        """
        read = read_newest_manifest_checkpoint if self.horizon is Horizon.DAY else read_manifest_checkpoint
        checkpoint = former = read(self.store, self.stream)
        manifests = self._compactable(former, before, keep)
        # In portions: the manifests of a day of short batches would take hundreds of megabytes.
        while portion := list(islice(manifests, _MANIFESTS_AT_ONCE)):
            checkpoint = _added(checkpoint, portion)
        return checkpoint if checkpoint is not former else None

    def _compactable(self, former: ManifestCheckpoint | None, before: datetime, keep: int) -> Iterator[BatchManifest]:
        manifests = Manifests(self.store, self.stream)
        ids = manifests.batches()[:-keep]
        # The deduplication window needs the manifests of batches whose events it still remembers.
        remembered = [_batch_of(path) for path in self.store.paths(events_folder(self.stream))]
        for manifest in manifests.read_many([each for each in ids if former is None or each > former.through]):
            if manifest.batch_id >= min(remembered, default=manifest.batch_id + 1):
                return
            if datetime.fromisoformat(manifest.written_at) >= before or not self._reconciles(manifest):
                return
            yield manifest

    def _reconciles(self, manifest: BatchManifest) -> bool:
        if any(entry.table not in self.appended for entry in manifest.tables) or any(batch_problems(manifest)):
            # A stateful stream writes no records into the layers: it has no tables, and nothing to reconcile.
            return not manifest.tables
        transaction = f"{manifest.app_id}/{manifest.batch_id}"
        for entry in manifest.tables:
            for file in entry.files:
                found = self.appended[entry.table].get(file.path, [])
                if [(each.transaction, each.rows) for each in found] != [(transaction, file.rows)]:
                    return False
        return True


def _added(former: ManifestCheckpoint | None, manifests: Sequence[BatchManifest]) -> ManifestCheckpoint:
    """Extend a manifest checkpoint with the batches that follow it, or begin one."""
    dead, again = Counter(former.dead_letters if former else {}), Counter(former.duplicates if former else {})
    quarantined, dropped = Counter(former.quarantined if former else {}), Counter(former.dropped if former else {})
    for manifest in manifests:
        dead.update(manifest.dead_letters)
        again.update(manifest.duplicates)
        quarantined.update(manifest.judged.quarantined)
        dropped.update(manifest.judged.dropped)
    offsets = [*(former.offsets if former else ()), *(each for one in manifests for each in _taken(one))]
    return ManifestCheckpoint(
        stream=manifests[-1].stream,
        through=manifests[-1].batch_id,
        batches=(former.batches if former else 0) + len(manifests),
        records=(former.records if former else 0) + sum(each.records for each in manifests),
        silver_rows=(former.silver_rows if former else 0) + sum(each.silver_rows for each in manifests),
        dead_letters=dict(dead),
        duplicates=dict(again),
        quarantined=dict(quarantined),
        dropped=dict(dropped),
        offsets=joined(offsets),
        applications={**(former.applications if former else {}), **{each.app_id: each.batch_id for each in manifests}},
    )


def _taken(manifest: BatchManifest) -> Iterator[TopicOffsets]:
    return (TopicOffsets(topic=manifest.topic, topic_id=manifest.topic_id, taken=each) for each in manifest.offsets)


def joined(offsets: Iterable[TopicOffsets]) -> tuple[TopicOffsets, ...]:
    """Join consecutive offset ranges of a partition; overlapping ranges and ranges with gaps stay separate."""
    result: list[TopicOffsets] = []
    for each in sorted(offsets, key=lambda one: (one.topic, one.topic_id, one.taken.partition, one.taken.first)):
        last = result[-1] if result else None
        if last is not None and _follows(last, each):
            before = last.taken
            longer = OffsetRange(
                partition=before.partition,
                first=before.first,
                last=each.taken.last,
                records=before.records + each.taken.records,
            )
            result[-1] = msgspec.structs.replace(last, taken=longer)
        else:
            result.append(each)
    return tuple(result)


def _follows(before: TopicOffsets, after: TopicOffsets) -> bool:
    same = (before.topic, before.topic_id, before.taken.partition) == (
        after.topic,
        after.topic_id,
        after.taken.partition,
    )
    return same and after.taken.first == before.taken.last + 1


def _committed_at(actions: list[Action], default: int) -> int:
    return int(commit_info_of(actions).get("timestamp", default))


def _batch_of(path: str) -> int:
    return int(path.rsplit("/", 1)[-1].partition("-")[0])
