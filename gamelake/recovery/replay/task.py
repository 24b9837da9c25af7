"""The Spark task of a replay: reads records, writes files of the wanted rows, and returns reports."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

import msgspec
import numpy as np
import pyarrow as pa

from gamelake.layers.bronze import ingest_days
from gamelake.layers.identity import Identities
from gamelake.layers.known_events import Flags
from gamelake.layers.routing import Router
from gamelake.layers.silver import common_columns
from gamelake.model.naming import QUARANTINE, SILVER_EVENTS, game_table
from gamelake.quality.checking import NO_CHECKED_RULES
from gamelake.quality.judging import QuarantinedRows, judge_for
from gamelake.quality.quarantine import as_quarantine
from gamelake.recovery.replay.marks import MARKED_IN, WHY, as_marks, without
from gamelake.recovery.replay.presence import EventNames, Presence, by_event, by_record
from gamelake.schemas.decoder import Decoded
from gamelake.storage.manifests import Judged
from gamelake.storage.store import Store
from gamelake.streaming.chunk import ChunkWriter, TableDay
from gamelake.streaming.plan import TaskPlan, WrittenFile
from gamelake.streaming.sorting import RecordCoordinates, RowRun, Sorter, event_days
from gamelake.streaming.task import kafka_microseconds, schema_ids, worker_decoder


@dataclass(frozen=True, slots=True)
class QuarantineWriter:
    """Chooses the quarantined rows that neither silver nor the quarantine has, for the tables in `targets`."""

    presence: Presence
    targets: frozenset[str]

    def rows(self, offenders: QuarantinedRows, records: pa.RecordBatch) -> Iterator[tuple[TableDay, pa.RecordBatch]]:
        """The new rows of the quarantine by day; `records` has the Kafka record of each row, in the same order."""
        found = as_quarantine(offenders, common_columns(offenders.rows), records)
        games, days = offenders.games.to_numpy(zero_copy_only=False), event_days(found)
        for game in sorted(set(games)):
            table = game_table(game)
            if self.targets and table not in self.targets:
                continue
            for day in np.unique(days[games == game]):
                target = TableDay(QUARANTINE, int(day))
                rows = found.filter(pa.array((games == game) & (days == day)))
                yield target, self._missing(table, target, rows)

    def _missing(self, table: str, target: TableDay, rows: pa.RecordBatch) -> pa.RecordBatch:
        events = self.presence.events(table, rows)
        partitions = rows.column("kafka_partition").to_numpy()
        missing = self.presence.missing(table, target.date, events, partitions)
        missing &= self.presence.missing(QUARANTINE, target.date, events, partitions)
        return rows.filter(pa.array(missing))


class WantedRows(StrEnum):
    """Which rows a table is to get."""

    MISSING = "missing"
    PRESENT = "present"


@dataclass(frozen=True, slots=True)
class DayRange:
    """A range of days of events, both ends included; None is unbounded."""

    first: date | None = None
    last: date | None = None

    def contains(self, day: str) -> bool:
        """Whether an ISO date is in the range."""
        after = self.first is None or day >= self.first.isoformat()
        return after and (self.last is None or day <= self.last.isoformat())


class Purpose(StrEnum):
    """Whether rows are written, or only counted."""

    WRITE = "write"
    COUNT = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """The input of a task besides its records; pickled into the Spark job.

    Attributes:
        run: the number of the run.
        source: the table of the records.
        targets: the tables that may get rows; empty for all.
        versions: the version at which each existing table is read.
        days: the days of events that may become rows.
    """

    decoding: TaskPlan
    run: int
    source: str
    targets: frozenset[str]
    versions: dict[str, int]
    wanted: WantedRows = WantedRows.MISSING
    purpose: Purpose = Purpose.WRITE
    days: DayRange = DayRange()


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of one chunk: files, number of records, rows by table, and undecodable records by reason.

    `judged` has the counts of quarantined and dropped rows by rule.
    """

    files: tuple[WrittenFile, ...]
    records: int
    rows: dict[str, int]
    still_dead: dict[str, int]
    judged: Judged = Judged()


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """The function that Spark maps over the records (`mapInArrow`)."""

    plan: ReplayPlan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode the records of a partition and write the wanted rows; yield one encoded report per chunk.

        Args:
            batches: columns `topic`, `partition` (int32), `offset`, `timestamp` (us, UTC), `value` (binary) and the
                reason column of the source; sorted by partition, timestamp and offset.

        Yields:
            Batches of one row with the column `report` (binary).
        """
        chunk = _Chunk(self.plan)
        for batch in batches:
            chunk.take(batch)
            if chunk.is_full():
                yield _encode(chunk.flush())
        if chunk.counts.records:
            yield _encode(chunk.flush())


@dataclass(slots=True)
class _Counts:
    records: int = 0
    bytes: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    still_dead: Counter[str] = field(default_factory=Counter)


class _Chunk:
    """Takes records until it is full, then writes the files and reports."""

    def __init__(self, plan: ReplayPlan) -> None:
        self._plan = plan
        decoding, store = plan.decoding, Store(plan.decoding.lakehouse)
        router = Router(decoding.contract, decoding.unlisted_tables)
        self._decoder = worker_decoder(decoding, store)
        # Existing rows stay, even if they break a newer rule.
        self._judge = judge_for(decoding.rules if plan.wanted is WantedRows.MISSING else NO_CHECKED_RULES)
        schemas = dict(decoding.schemas)
        self._sorter = Sorter(router, decoding.contract, schemas, judge=self._judge, clock=decoding.clock)
        names = by_event if plan.wanted is WantedRows.MISSING else by_record
        self._presence = Presence(
            decoding.lakehouse, plan.versions, router, EventNames(Identities(str(plan.run)), names)
        )
        self._quarantining = QuarantineWriter(self._presence, plan.targets)
        self._writer = ChunkWriter(store, decoding.contract, decoding.writer_threads, decoding.schemas)
        self.counts = _Counts()

    def is_full(self) -> bool:
        """Whether another batch would make the chunk too large."""
        limits = self._plan.decoding.chunk
        return self.counts.records >= limits.records or self.counts.bytes >= limits.value_bytes

    def take(self, batch: pa.RecordBatch) -> None:
        """Decode one batch of records and keep the wanted rows."""
        self.counts.records += len(batch)
        self.counts.bytes += batch.column("value").nbytes
        decoded = self._decoder.decode(batch.column("value"))
        partitions = batch.column("partition").cast(pa.int64())
        placement = RecordCoordinates(partitions, batch.column("offset"), kafka_microseconds(batch))
        for group in decoded.groups:
            for run in self._sorter.sort(group, placement, decoded.rejects):
                self._add(run)
        self.counts.still_dead.update(reason.value for reason in decoded.rejects.reasons)
        offenders = self._judge.quarantined()
        if self._plan.source != QUARANTINE:
            self._quarantine(offenders, _as_records(batch, decoded))
        if self._plan.source in MARKED_IN:
            still = [int(row) for each in offenders for row in each.records] if self._plan.source == QUARANTINE else []
            self._mark(batch, [*decoded.rejects.rows, *still])

    def _add(self, run: RowRun) -> None:
        if not self._plan.days.contains(TableDay(run.table, run.day).date):
            return
        events = self._presence.events(run.table, run.rows)
        partitions = run.rows.column("kafka_partition").to_numpy()
        choose = self._presence.missing if self._plan.wanted is WantedRows.MISSING else self._presence.present
        for table in (run.table, SILVER_EVENTS):
            if self._plan.targets and table not in self._plan.targets:
                continue
            target = TableDay(table, run.day)
            self._keep(target, run, choose(table, target.date, events, partitions))

    def _keep(self, target: TableDay, run: RowRun, chosen: Flags) -> None:
        self.counts.rows[target.table] += int(chosen.sum())
        if self._plan.purpose is Purpose.WRITE and chosen.any():
            rows = run.rows.filter(pa.array(chosen))
            rows = common_columns(rows) if target.table == SILVER_EVENTS else rows
            self._writer.add(target, rows, run.schema_id)

    def _quarantine(self, offenders: list[QuarantinedRows], records: pa.RecordBatch) -> None:
        for each in offenders:
            of_each = records.take(pa.array(each.records))
            for target, rows in self._quarantining.rows(each, of_each):
                self.counts.rows[target.table] += len(rows)
                if self._plan.purpose is Purpose.WRITE:
                    self._writer.add(target, rows)

    def _mark(self, batch: pa.RecordBatch, still: list[int]) -> None:
        """Mark all records as settled, except those that stay in the source."""
        settled, table = without(batch, still), MARKED_IN[self._plan.source]
        self.counts.rows[table] += len(settled)
        if self._plan.purpose is Purpose.WRITE:
            days, marks = ingest_days(settled), as_marks(settled, self._plan.run, WHY[self._plan.source])
            for day in np.unique(days):
                self._writer.add(TableDay(table, int(day)), marks.filter(pa.array(days == day)))

    def flush(self) -> ReplayReport:
        """Write the files, and start a new chunk."""
        counts, self.counts = self.counts, _Counts()
        return ReplayReport(
            files=self._writer.write(),
            records=counts.records,
            rows={table: rows for table, rows in counts.rows.items() if rows},
            still_dead=dict(counts.still_dead),
            judged=self._judge.judged(),
        )


def _as_records(batch: pa.RecordBatch, decoded: Decoded) -> pa.RecordBatch:
    """The columns of the records that the quarantine keeps."""
    columns = {
        "topic": batch.column("topic"),
        "kafka_timestamp": batch.column("timestamp"),
        "schema_id": schema_ids(decoded, len(batch)),
        "value": batch.column("value"),
    }
    return pa.RecordBatch.from_pydict(columns)


def decode_report(report: bytes) -> ReplayReport:
    """Decode a report from the row that a task yields."""
    return msgspec.msgpack.decode(report, type=ReplayReport)


def _encode(report: ReplayReport) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([msgspec.msgpack.encode(report)], pa.binary())], names=["report"])
