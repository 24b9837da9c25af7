"""The Spark task of a stream of Kafka records: decodes and sorts records, writes files, and reports them."""

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.layers.bronze import as_bronze, ingest_days
from gamelake.layers.dead_letters import as_dead_letters
from gamelake.layers.routing import Router
from gamelake.layers.silver import common_columns
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, QUARANTINE, SILVER_EVENTS
from gamelake.quality.judging import judge_for
from gamelake.quality.quarantine import as_quarantine
from gamelake.schemas.decoder import Decoded, Decoder, Rejects
from gamelake.schemas.registry import SchemaRegistry
from gamelake.schemas.schema_cache import SchemaCache
from gamelake.storage.manifests import OffsetRange
from gamelake.storage.store import Store
from gamelake.streaming.chunk import ChunkWriter, TableDay
from gamelake.streaming.cross_source import CrossSourceDuplicateFilter
from gamelake.streaming.duplicates import DuplicateFilter, NoOpDuplicateFilter, WindowDuplicateFilter
from gamelake.streaming.kafka_reader import ReadFailure
from gamelake.streaming.plan import EVENTS_IN_MEMORY, TaskPlan, TaskReport, encode_report, merge_offsets
from gamelake.streaming.sorting import RecordCoordinates, Sorter, event_days
from gamelake.streaming.table_shuffle import SMALL_BYTES, write_shuffle_file

# One decoder for all tasks of a worker process: schemas are compiled once, not once per batch.
_decoders: dict[tuple[object, ...], Decoder] = {}


@dataclass(frozen=True, slots=True)
class FanOutTask:
    """Decodes, sorts and writes the records of a task."""

    plan: TaskPlan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode, sort and write all records; yield one row with a report (binary) per chunk."""
        chunk = Chunk(self.plan, duplicate_filter(self.plan))
        for batch in batches:
            chunk.take(batch)
            if chunk.is_full():
                yield encode_report(chunk.flush())
        if chunk.records:
            yield encode_report(chunk.flush())

    def failed(self, failure: ReadFailure) -> pa.RecordBatch:
        """One row with a report of the failure: the column `report` (binary)."""
        return encode_report(TaskReport(task="", files=(), offsets=(), dead_letters={}, failure=failure))


class Chunk:
    """Collects records until it is full, then writes their files and reports them."""

    def __init__(self, plan: TaskPlan, duplicates: DuplicateFilter) -> None:
        self._plan = plan
        self._task = str(uuid.uuid4())
        store = self._store = Store(plan.lakehouse)
        self._decoder = worker_decoder(plan, store)
        router = Router(plan.contract, plan.unlisted_tables)
        self._duplicates = duplicates
        self._judge = judge_for(plan.rules)
        self._sorter = Sorter(router, plan.contract, dict(plan.schemas), self._duplicates, self._judge, plan.clock)
        self._writer = ChunkWriter(store, plan.contract, plan.writer_threads, plan.schemas)
        self._reset()

    def _reset(self) -> None:
        self.records = 0
        self._bytes = 0
        self._offsets: list[OffsetRange] = []
        self._dead_letters: Counter[str] = Counter()

    def is_full(self) -> bool:
        """Whether another batch would make the chunk too large."""
        return self.records >= self._plan.chunk.records or self._bytes >= self._plan.chunk.value_bytes

    def take(self, batch: pa.RecordBatch) -> None:
        """Decode and sort one batch of records, in the columns of `RECORD_SCHEMA`."""
        self.records += len(batch)
        self._bytes += batch.column("value").nbytes
        self._offsets.extend(offset_ranges(batch))
        decoded = self._decoder.decode(batch.column("value"))
        bronze = as_bronze(batch, self._plan.topic, schema_ids(decoded, len(batch)))
        days = ingest_days(batch)
        self._add_by_day(BRONZE_EVENTS, bronze, days)
        self._add_events(batch, decoded)
        self._add_quarantined(bronze)
        self._add_dead_letters(bronze, days, decoded.rejects)

    def add_dead_letters(self, batch: pa.RecordBatch, rejects: Rejects) -> None:
        """Write records to bronze and the dead letters without decoding; `rejects` has one element per record."""
        self.records += len(batch)
        self._bytes += batch.column("value").nbytes
        bronze = as_bronze(batch, self._plan.topic, pa.nulls(len(batch), pa.int64()))
        days = ingest_days(batch)
        self._add_by_day(BRONZE_EVENTS, bronze, days)
        self._add_dead_letters(bronze, days, rejects)

    def _add_events(self, batch: pa.RecordBatch, decoded: Decoded) -> None:
        placement = RecordCoordinates(
            batch.column("partition").cast(pa.int64()),
            batch.column("offset"),
            kafka_microseconds(batch),
        )
        for group in decoded.groups:
            for run in self._sorter.sort(group, placement, decoded.rejects):
                self._writer.add(TableDay(run.table, run.day), run.rows, run.schema_id)
                self._writer.add(TableDay(SILVER_EVENTS, run.day), common_columns(run.rows), run.schema_id)

    def _add_quarantined(self, bronze: pa.RecordBatch) -> None:
        for offenders in self._judge.quarantined():
            records = bronze.take(pa.array(offenders.records))
            rows = as_quarantine(offenders, common_columns(offenders.rows), records)
            self._add_by_day(QUARANTINE, rows, event_days(rows))

    def _add_dead_letters(self, bronze: pa.RecordBatch, days: npt.NDArray[np.int64], rejects: Rejects) -> None:
        if rejects.rows:
            dead_letters = as_dead_letters(bronze, rejects.rows, rejects.reasons, rejects.details)
            self._add_by_day(DEAD_LETTERS, dead_letters, days[rejects.rows])
            self._dead_letters.update(reason.value for reason in rejects.reasons)

    def _add_by_day(self, table: str, rows: pa.RecordBatch, days: npt.NDArray[np.int64]) -> None:
        for day in np.unique(days):
            of_day = rows if (days == day).all() else rows.filter(pa.array(days == day))
            self._writer.add(TableDay(table, int(day)), of_day)

    def flush(self) -> TaskReport:
        """Write the rows to files, report these, and start an empty chunk."""
        events, duplicates = self._duplicates.write()
        small = self._writer.take_small(SMALL_BYTES) if self._plan.shuffle else []
        report = TaskReport(
            task=self._task,
            files=self._writer.write(),
            offsets=merge_offsets(self._offsets),
            dead_letters=dict(self._dead_letters),
            duplicates=duplicates,
            events=events,
            judged=self._judge.judged(),
            shuffled=write_shuffle_file(self._store, self._plan.shuffle, small),
        )
        self._reset()
        return report


def duplicate_filter(plan: TaskPlan) -> DuplicateFilter:
    """The duplicate filter of a task, as its plan says."""
    store = Store(plan.lakehouse)
    found: DuplicateFilter = WindowDuplicateFilter(plan.dedup, store) if plan.dedup else NoOpDuplicateFilter()
    if not plan.other_sources:
        return found
    in_memory = plan.dedup.in_memory if plan.dedup else EVENTS_IN_MEMORY
    return CrossSourceDuplicateFilter(found, plan.other_sources, store, in_memory)


def worker_decoder(plan: TaskPlan, store: Store) -> Decoder:
    """The decoder of this process for a lakehouse and a registry."""
    key = (plan.lakehouse.uri, plan.registry_url, plan.schema_wait, plan.schema_limits)
    if key not in _decoders:
        registry, limits = SchemaRegistry(plan.registry_url), plan.schema_limits
        _decoders[key] = Decoder(SchemaCache(registry, store, plan.schema_wait, limits=limits), limits)
    return _decoders[key]


def schema_ids(decoded: Decoded, length: int) -> pa.Array:
    """The schema id of each record (int64, in order); null for a record without one."""
    ids = np.full(length, -1, np.int64)
    for message_type, rows in decoded.framed:
        ids[rows] = message_type.schema_id
    return pa.array(ids, mask=ids < 0)


def kafka_microseconds(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The Kafka timestamp of each record in microseconds since 1970 (int64); now for a record without one."""
    given = pc.fill_null(batch.column("timestamp").cast(pa.int64()), 0).to_numpy()
    return np.where(given > 0, given, time.time_ns() // 1000)


def offset_ranges(batch: pa.RecordBatch) -> list[OffsetRange]:
    """The offset range of each Kafka partition, from the columns partition and offset, in the order of partitions."""
    partitions = batch.column("partition").to_numpy()
    offsets = batch.column("offset").to_numpy()
    ranges = []
    for partition in np.unique(partitions):
        taken = offsets[partitions == partition]
        ranges.append(
            OffsetRange(partition=int(partition), first=int(taken.min()), last=int(taken.max()), records=len(taken))
        )
    return ranges
