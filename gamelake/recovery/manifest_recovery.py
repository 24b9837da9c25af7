"""Rebuilds lost manifests from the traces of their batches in the tables: commits, rows and offsets.

This is needed if the state of a lakehouse was restored from a backup that is older than its tables. A manifest is
rebuilt if all commits of its batch exist, judged by the row counts in each of them. The deduplication window does not
get the events of the batch: a later duplicate of one may become a row.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.delta.data_files import DataFile
from gamelake.delta.listing import own_tables
from gamelake.delta.log.codec import (
    BATCH_NOTE,
    FileEntry,
    commit_info_of,
    contents_of,
    decode_entry,
    entry_path,
    entry_versions,
    row_count,
)
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import open_table
from gamelake.ledger.generations import Generation, Generations
from gamelake.ledger.manifests import RULE_METRIC, BatchManifest, Judged, Manifests, OffsetRange
from gamelake.ledger.reconciliation import batch_problems, streams_of
from gamelake.model.errors import BackupError
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, QUARANTINE, Layer
from gamelake.objects.store import Store
from gamelake.scans.datasets import dataset

_UNKNOWN_GAME = _UNKNOWN_RULE = "unknown"


class RebuiltManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A batch whose manifest was rebuilt.

    Attributes:
        stream: name of the stream.
        batch: the batch id.
        records: number of Kafka records in the batch.
    """

    stream: str
    batch: int
    records: int


@dataclass(slots=True)
class _Batch:
    """The commits of one batch.

    Attributes:
        at: time of the last commit, in milliseconds since 1970.
        adds: add actions by table.
        record_counts: counts of the whole batch, which each of its commits states.
    """

    at: int = 0
    adds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    record_counts: dict[str, int] = field(default_factory=dict)


def rebuild_manifests(store: Store) -> Iterator[RebuiltManifest]:
    """Rebuild and write the manifests after the newest one of each stream.

    Yields:
        Each batch whose manifest was written; of a stream, the oldest batch first.

    Raises:
        BackupError: a batch is in only some of its tables.
    """
    for stream in streams_of(store):
        generations, last = Generations(store, stream).all(), Manifests(store, stream).last(1)
        if not generations:
            continue
        generation = generations[-1]
        after = last[0].batch_id if last else generation.first_batch - 1
        for batch_id, batch in sorted(_batches(store, generation, after).items()):
            manifest = _LostManifest(store, generation, batch_id, batch).manifest()
            Manifests(store, stream).settle(manifest)
            yield RebuiltManifest(stream=stream, batch=batch_id, records=manifest.records)


def _batches(store: Store, generation: Generation, after: int) -> Mapping[int, _Batch]:
    """Collect a generation's batches after a batch from the tables' logs, by id."""
    batches: defaultdict[int, _Batch] = defaultdict(_Batch)
    for table in own_tables(store):
        if table.startswith((f"{Layer.GOLD}/", f"{Layer.LINEAGE}/")):
            continue
        for actions in _entries_back_to(store, table, generation.app_id, after):
            info = commit_info_of(actions)
            app_id, _, number = str(info.get(BATCH_NOTE, "")).rpartition("/")
            if app_id == generation.app_id and int(number) > after:
                batch = batches[int(number)]
                batch.at = max(batch.at, int(info["timestamp"]))
                batch.adds[table] = list(contents_of(actions, "add"))
                counts = info["operationMetrics"].items()
                batch.record_counts = {name: int(count) for name, count in counts if not name.startswith(RULE_METRIC)}
    return batches


def _entries_back_to(store: Store, table: str, app_id: str, batch: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the entries of a table, newest first, that are newer than the commit of a batch or an earlier one."""
    for version in reversed(entry_versions(store, table)):
        # Log cleanup may have deleted it since it was listed.
        if (entry := store.get(entry_path(table, version))) is None:
            return
        actions = decode_entry(entry)
        taken = contents_of(actions, "txn")
        if any(each["appId"] == app_id and each["version"] <= batch for each in taken):
            return
        yield actions


@dataclass(frozen=True, slots=True)
class _LostManifest:
    """Rebuilds the manifest of one batch."""

    store: Store
    generation: Generation
    batch_id: int
    batch: _Batch

    def manifest(self) -> BatchManifest:
        """Build the lost manifest, without its events.

        Raises:
            BackupError: some of its commits are missing.
        """
        duplicates = self.batch.record_counts.get("batchDuplicates", 0)
        dropped = self.batch.record_counts.get("batchDropped", 0)
        manifest = BatchManifest(
            stream=self.generation.stream,
            query_id=self.generation.query_id,
            generation=self.generation.number,
            batch_id=self.batch_id,
            topic=self.generation.topic,
            topic_id=self.generation.topic_id,
            written_at=datetime.fromtimestamp(self.batch.at / 1000, UTC).isoformat(),
            offsets=tuple(self._offsets()),
            tables=tuple(self._table(table, adds) for table, adds in sorted(self.batch.adds.items())),
            dead_letters=dict(Counter(self._values(DEAD_LETTERS, "reason").to_pylist())),
            duplicates={_UNKNOWN_GAME: duplicates} if duplicates else {},
            judged=Judged(
                quarantined=dict(Counter(self._values(QUARANTINE, "rule").to_pylist())),
                dropped={_UNKNOWN_RULE: dropped} if dropped else {},
            ),
        )
        problems = list(batch_problems(manifest))
        # Commits of older releases have no counts of rules.
        if problems or not self.batch.record_counts.items() <= manifest.record_counts.items():
            raise BackupError(
                f"batch {self.batch_id} of {self.generation.stream}, which is newer than the backup, is in only "
                f"some of its tables ({'; '.join(problems)}). Restore them with jobs/restore.py --before-batch "
                f"{self.batch_id}, then restore the backup again"
            )
        return manifest

    def _table(self, table: str, adds: list[dict[str, Any]]) -> TableFiles:
        handle = open_table(self.store.location, table)
        files = tuple(
            DataFile(
                path=unquote(add["path"]),
                size=add["size"],
                rows=row_count(add),
                partition=add["partitionValues"],
                statistics=add["stats"],
            )
            for add in adds
        )
        partition_by = tuple(handle.metadata().partition_columns)
        return TableFiles(table=table, partition_by=partition_by, schema=handle.schema().to_json(), files=files)

    def _offsets(self) -> Iterator[OffsetRange]:
        """Yield the offset range of each partition, from bronze; it misses offsets without a record at its ends."""
        rows = pa.table({name: self._values(BRONZE_EVENTS, name) for name in ("partition", "offset")})
        by_partition = rows.group_by("partition").aggregate([("offset", "min"), ("offset", "max"), ("offset", "count")])
        for row in sorted(by_partition.to_pylist(), key=lambda each: each["partition"]):
            yield OffsetRange(
                partition=row["partition"], first=row["offset_min"], last=row["offset_max"], records=row["offset_count"]
            )

    def _values(self, table: str, column: str) -> pa.ChunkedArray:
        """Read a column of the rows that the batch added to a table, in the order of its files."""
        adds = self.batch.adds.get(table, [])
        if not adds:
            return pa.chunked_array([], pa.string())
        files = list(map(FileEntry.added_by, adds))
        schema = pa.schema(open_table(self.store.location, table).schema())
        wanted = pa.schema([schema.field(column), *(schema.field(name) for name in files[0].partition)])
        found = dataset(self.store.location, table, wanted, files).to_table(columns=[column])[column]
        return pc.cast(found, pa.string()) if column in ("reason", "rule") else found
