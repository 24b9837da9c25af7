"""The Spark task of a stream of Kafka records: decodes and sorts records, writes files, and reports them."""

import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gamelake.layers.bronze import as_bronze, ingest_days
from gamelake.layers.dead_letters import as_dead_letters
from gamelake.layers.routing import Router
from gamelake.layers.silver import common_columns
from gamelake.ledger.manifests import OffsetRange
from gamelake.ledger.skipped_records import parted
from gamelake.model.arrays import Ints
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, QUARANTINE, SILVER_EVENTS
from gamelake.model.worker_cache import per_worker
from gamelake.objects.store import Store
from gamelake.quality.judging import judge_for
from gamelake.quality.quarantine import as_quarantine
from gamelake.schemas.decoder import Decoded, Decoder, Rejects
from gamelake.schemas.registry import SchemaRegistry
from gamelake.schemas.schema_cache import SchemaCache
from gamelake.streaming.dedup.duplicates import DuplicateFilter
from gamelake.streaming.dedup.ingested import OtherSources, WindowEvents
from gamelake.streaming.dedup.worker_memory import worker_memory
from gamelake.streaming.kafka.reader import TaskFailure
from gamelake.streaming.plan import EVENTS_IN_MEMORY, TaskPlan, TaskReport, encode_report, merge_offsets
from gamelake.streaming.tasks.chunk import ChunkWriter, TableDay
from gamelake.streaming.tasks.sorting import RecordCoordinates, Sorter, event_days
from gamelake.streaming.tasks.table_shuffle import SMALL_BYTES, write_shuffle_file


@dataclass(frozen=True, slots=True)
class FanOutTask:
    """Decodes, sorts and writes the records of a task.

    Attributes:
        plan: of the batch.
    """

    plan: TaskPlan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode, sort and write all records in the columns of `RECORD_SCHEMA`.

        Yields:
            One row for each chunk, with its report in the column `report` (binary, MessagePack).
        """
        chunk = Chunk(self.plan, duplicate_filter(self.plan))
        for batch in batches:
            yield from map(encode_report, chunk.take(chunk.without_skipped(batch)))
        if chunk.records:
            yield encode_report(chunk.flush())

    def failed(self, failure: TaskFailure) -> pa.RecordBatch:
        """Return one row with a report of the failure in the column `report` (binary, MessagePack)."""
        return encode_report(TaskReport(task="", files=(), offsets=(), dead_letters={}, failure=failure))


class Chunk:
    """Collects records until it is full, then writes their files and reports them; for one thread.

    Args:
        plan: of the batch.
        duplicates: finds the duplicates among the events.

    Attributes:
        records: the number of records since the last report.
    """

    def __init__(self, plan: TaskPlan, duplicates: DuplicateFilter) -> None:
        self._plan = plan
        self._task = str(uuid.uuid4())
        store = self._store = Store(plan.lakehouse)
        self._decoder = worker_decoder(plan)
        router = Router(plan.contract, plan.unlisted_tables)
        self._duplicates = duplicates
        self._judge = judge_for(plan.rules)
        self._sorter = Sorter(router, plan.contract, dict(plan.schemas), self._duplicates, self._judge, plan.clock)
        self._writer = ChunkWriter(store, plan.contract, plan.writer_threads, plan.schemas)
        self._reset()

    def _reset(self) -> None:
        self.records = 0
        self._bytes = self._decoded_bytes = 0
        self._offsets: list[OffsetRange] = []
        self._dead_letters: Counter[str] = Counter()

    def without_skipped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Write the records that the plan skips to the dead letters, and return the others.

        Args:
            batch: in the columns of `RECORD_SCHEMA`.

        Returns:
            The other records, in the same columns and order.
        """
        kept, left_out = parted(batch, self._plan.skipped)
        for records, skipped in left_out:
            self._offsets.extend(offset_ranges(records))
            rejects = Rejects()
            rejects.add(list(range(len(records))), DeadLetterReason.POISONOUS, skipped.problem)
            self.add_dead_letters(records, rejects)
        return kept

    def take(self, batch: pa.RecordBatch) -> Iterator[TaskReport]:
        """Decode and sort one batch of records, in the columns of `RECORD_SCHEMA`.

        Yields:
            A report of the records since the last one, each time that they fill the chunk.
        """
        for records, decoded in decoded_portions(self._decoder, batch):
            self._add(records, decoded)
            if self._plan.chunk.are_reached(self.records, self._bytes, self._decoded_bytes):
                yield self.flush()

    def _add(self, batch: pa.RecordBatch, decoded: Decoded) -> None:
        self.records += len(batch)
        self._bytes += batch.column("value").nbytes
        self._decoded_bytes += sum(group.columns.nbytes for group in decoded.groups)
        self._offsets.extend(offset_ranges(batch))
        bronze = as_bronze(batch, self._plan.topic, schema_ids(decoded, len(batch)))
        days = ingest_days(batch)
        self._add_by_day(BRONZE_EVENTS, bronze, days)
        self._add_events(batch, decoded)
        self._add_quarantined(bronze)
        self._add_dead_letters(bronze, days, decoded.rejects)

    def add_dead_letters(self, batch: pa.RecordBatch, rejects: Rejects) -> None:
        """Write records to bronze and the dead letters without decoding them.

        Args:
            batch: in the columns of `RECORD_SCHEMA`.
            rejects: the reason of each record, one element per record, in order.
        """
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

    def _add_dead_letters(self, bronze: pa.RecordBatch, days: Ints, rejects: Rejects) -> None:
        if rejects.rows:
            dead_letters = as_dead_letters(bronze, rejects.rows, rejects.reasons, rejects.details)
            self._add_by_day(DEAD_LETTERS, dead_letters, days[rejects.rows])
            self._dead_letters.update(reason.value for reason in rejects.reasons)

    def _add_by_day(self, table: str, rows: pa.RecordBatch, days: Ints) -> None:
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
    """Create the duplicate filter of a task from its plan."""
    store, window = Store(plan.lakehouse), plan.dedup
    seeds = {each.seed for each in plan.other_sources} | ({window.seed} if window else set())
    memory = worker_memory(store, window.in_memory if window else EVENTS_IN_MEMORY, seeds)
    others = OtherSources(plan.other_sources, store, memory)
    return DuplicateFilter(WindowEvents(window, store, memory) if window else None, others)


def worker_decoder(plan: TaskPlan) -> Decoder:
    """Return the decoder of this process for a lakehouse and a registry; it keeps compiled schemas."""

    def make() -> Decoder:
        registry, store = SchemaRegistry(plan.registry_url), Store(plan.lakehouse)
        limits = plan.schema_limits
        return Decoder(SchemaCache(registry, store, plan.schema_wait, limits=limits), limits)

    return per_worker(Decoder, (plan.lakehouse.uri, plan.registry_url, plan.schema_wait, plan.schema_limits), make)


def decoded_portions(decoder: Decoder, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, Decoded]]:
    """Decode records in portions that need little memory; usually there is one portion.

    Args:
        decoder: of this process.
        batch: in the columns of `RECORD_SCHEMA`.

    Yields:
        The records of each portion, in order, and their decoded events.
    """
    for first, decoded in decoder.portions(batch.column("value")):
        yield batch if decoded.records == len(batch) else batch.slice(first, decoded.records), decoded


def schema_ids(decoded: Decoded, length: int) -> pa.Array:
    """Return the schema id of each record (int64, in order); null for a record without one.

    Args:
        decoded: the decoded records.
        length: the number of records.
    """
    ids = np.full(length, -1, np.int64)
    for message_type, rows in decoded.framed:
        ids[rows] = message_type.schema_id
    return pa.array(ids, mask=ids < 0)


def kafka_microseconds(batch: pa.RecordBatch) -> Ints:
    """Return the column timestamp in microseconds since 1970 (int64), one per record, in order."""
    return np.asarray(batch.column("timestamp").cast(pa.int64()).to_numpy())


def offset_ranges(batch: pa.RecordBatch) -> list[OffsetRange]:
    """Compute the offset range of each Kafka partition, from the columns partition and offset.

    Returns:
        One range for each partition, in the order of partitions.
    """
    partitions = batch.column("partition").to_numpy()
    offsets = batch.column("offset").to_numpy()
    ranges = []
    for partition in np.unique(partitions):
        taken = offsets[partitions == partition]
        ranges.append(
            OffsetRange(partition=int(partition), first=int(taken.min()), last=int(taken.max()), records=len(taken))
        )
    return ranges
