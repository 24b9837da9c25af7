"""The Spark task of a replay: reads records, writes files of the wanted rows, and returns reports."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.layers.bronze import ingest_days
from gamelake.layers.identity import Identities
from gamelake.layers.routing import Router
from gamelake.layers.silver import common_columns
from gamelake.ledger.manifests import EventsFile, Judged
from gamelake.model.arrays import Flags
from gamelake.model.naming import QUARANTINE, SILVER_EVENTS, game_table
from gamelake.objects.store import Store
from gamelake.quality.checking import NO_CHECKED_RULES
from gamelake.quality.judging import QuarantinedRows, judge_for
from gamelake.quality.quarantine import as_quarantine
from gamelake.recovery.replay.identities import IdentityPlan, IdentityWriter
from gamelake.recovery.replay.marks import MARKED_IN, WHY, as_marks
from gamelake.recovery.replay.presence import Presence, by_event, by_record
from gamelake.schemas.decoder import Decoded
from gamelake.streaming.plan import TaskPlan, WrittenFile, encode_report
from gamelake.streaming.tasks.chunk import ChunkWriter, TableDay
from gamelake.streaming.tasks.sorting import RecordCoordinates, RowRun, Sorter, event_days
from gamelake.streaming.tasks.task import decoded_portions, kafka_microseconds, schema_ids, worker_decoder

_PLAYER = "gamer_id"


def rows_of_players(rows: pa.RecordBatch, players: frozenset[str]) -> Flags:
    """Flag the rows of players.

    Args:
        rows: rows of silver or the quarantine; the column `gamer_id` is read, if they have it.
        players: pseudonyms.

    Returns:
        One bool for each row.
    """
    place = rows.schema.get_field_index(_PLAYER)
    if place < 0 or not players:
        return np.zeros(len(rows), np.bool_)
    named = pc.is_in(rows.column(place), value_set=pa.array(sorted(players), rows.column(place).type))
    return np.asarray(named.to_numpy(zero_copy_only=False))


class WantedRows(StrEnum):
    """The rows that a table gets: those that it lacks, or those that it has."""

    MISSING = "missing"
    PRESENT = "present"


@dataclass(frozen=True, slots=True)
class DayRange:
    """A range of days of events.

    Attributes:
        first: the first day; None for no bound.
        last: the last day, included; None for no bound.
    """

    first: date | None = None
    last: date | None = None

    def contains(self, day: str) -> bool:
        """Return True if an ISO date is in the range."""
        after = self.first is None or day >= self.first.isoformat()
        return after and (self.last is None or day <= self.last.isoformat())


class Purpose(StrEnum):
    """The purpose of a task: to write rows, or only to count them."""

    WRITE = "write"
    COUNT = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """The input of a task besides its records; pickled into the Spark job.

    Attributes:
        decoding: the part of the plan for decoding and writing.
        run: number of the replay run.
        source: the table of the records.
        targets: the tables that may get rows; empty for all.
        versions: the version at which each existing table is read.
        wanted: the rows that the tables get.
        purpose: whether rows are written, or only counted.
        days: the days of events that may become rows.
        erased: the pseudonyms of players whose erasure is recorded; none of their rows is written.
        identities: the part of the plan for the rows' identities; None to write none.
    """

    decoding: TaskPlan
    run: int
    source: str
    targets: frozenset[str]
    versions: dict[str, int]
    wanted: WantedRows = WantedRows.MISSING
    purpose: Purpose = Purpose.WRITE
    days: DayRange = DayRange()
    erased: frozenset[str] = frozenset()
    identities: IdentityPlan | None = None


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of one chunk.

    Attributes:
        files: the files that were written.
        records: number of records that were read.
        rows: number of wanted rows by table.
        still_dead: number of records that can't be decoded, by reason.
        judged: the rules' results.
        erased: number of rows of erased players by table, which are not written.
        events: the identity file of rows that a stream may receive again; None for none.
    """

    files: tuple[WrittenFile, ...]
    records: int
    rows: dict[str, int]
    still_dead: dict[str, int]
    judged: Judged = Judged()
    erased: dict[str, int] = {}
    events: EventsFile | None = None


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """The function that Spark maps over the records (`mapInArrow`).

    Attributes:
        plan: the plan of all tasks.
    """

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
            yield from map(encode_report, chunk.take(batch))
        if chunk.counts.records:
            yield encode_report(chunk.flush())


@dataclass(slots=True)
class _Counts:
    records: int = 0
    bytes: int = 0
    decoded_bytes: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    erased: Counter[str] = field(default_factory=Counter)
    still_dead: Counter[str] = field(default_factory=Counter)


class _Chunk:
    """Takes records until it is full, then writes the files and reports."""

    def __init__(self, plan: ReplayPlan) -> None:
        self._plan = plan
        decoding, store = plan.decoding, Store(plan.decoding.lakehouse)
        router = Router(decoding.contract, decoding.unlisted_tables)
        self._decoder = worker_decoder(decoding)
        # Existing rows stay, even if they break a newer rule.
        self._judge = judge_for(decoding.rules if plan.wanted is WantedRows.MISSING else NO_CHECKED_RULES)
        schemas = dict(decoding.schemas)
        self._sorter = Sorter(router, decoding.contract, schemas, judge=self._judge, clock=decoding.clock)
        name = by_event if plan.wanted is WantedRows.MISSING else by_record
        self._presence = Presence(decoding.lakehouse, plan.versions, router, Identities(str(plan.run)), name)
        self._known = IdentityWriter(store, plan.identities, plan.run) if plan.identities else None
        self._writer = ChunkWriter(store, decoding.contract, decoding.writer_threads, decoding.schemas)
        self.counts = _Counts()

    def take(self, batch: pa.RecordBatch) -> Iterator[ReplayReport]:
        """Decode one batch of records and keep the wanted rows; yield a report whenever the chunk is full."""
        for records, decoded in decoded_portions(self._decoder, batch):
            self._add(records, decoded)
            limits, counts = self._plan.decoding.chunk, self.counts
            if limits.are_reached(counts.records, counts.bytes, counts.decoded_bytes):
                yield self.flush()

    def _add(self, batch: pa.RecordBatch, decoded: Decoded) -> None:
        self.counts.records += len(batch)
        self.counts.bytes += batch.column("value").nbytes
        self.counts.decoded_bytes += sum(group.columns.nbytes for group in decoded.groups)
        partitions = batch.column("partition").cast(pa.int64())
        microseconds = kafka_microseconds(batch)
        if self._known:
            self._known.saw(partitions.to_numpy(), microseconds)
        placement = RecordCoordinates(partitions, batch.column("offset"), microseconds)
        for group in decoded.groups:
            for run in self._sorter.sort(group, placement, decoded.rejects):
                self._add_run(run)
        self.counts.still_dead.update(reason.value for reason in decoded.rejects.reasons)
        offenders = self._judge.quarantined()
        if self._plan.source != QUARANTINE:
            records = _as_records(batch, decoded)
            for each in offenders:
                self._quarantine(each, records.take(pa.array(each.records)))
        if self._plan.source in MARKED_IN:
            still = [int(row) for each in offenders for row in each.records] if self._plan.source == QUARANTINE else []
            self._mark(batch, [*decoded.rejects.rows, *still])

    def _add_run(self, run: RowRun) -> None:
        if not self._plan.days.contains(TableDay(run.table, run.day).date):
            return
        events = self._presence.events(run.table, run.rows)
        partitions = run.rows.column("kafka_partition").to_numpy()
        erased = rows_of_players(run.rows, self._plan.erased)
        choose = self._presence.missing if self._plan.wanted is WantedRows.MISSING else self._presence.present
        added = np.zeros(len(run.rows), np.bool_)
        for table in (run.table, SILVER_EVENTS):
            if self._plan.targets and table not in self._plan.targets:
                continue
            target = TableDay(table, run.day)
            chosen = choose(table, target.date, events, partitions)
            self.counts.erased[table] += int((chosen & erased).sum())
            self._keep(target, run, chosen & ~erased)
            added |= chosen & ~erased
        self._know(run.table, run.rows.filter(pa.array(added)))

    def _know(self, table: str, rows: pa.RecordBatch) -> None:
        """Add the identities of rows to the notice that streams read."""
        if self._known and self._plan.purpose is Purpose.WRITE and len(rows):
            self._known.add(table, rows)

    def _keep(self, target: TableDay, run: RowRun, chosen: Flags) -> None:
        self.counts.rows[target.table] += int(chosen.sum())
        if self._plan.purpose is Purpose.WRITE and chosen.any():
            rows = run.rows.filter(pa.array(chosen))
            rows = common_columns(rows) if target.table == SILVER_EVENTS else rows
            self._writer.add(target, rows, run.schema_id)

    def _quarantine(self, offenders: QuarantinedRows, records: pa.RecordBatch) -> None:
        """Add the quarantined rows that neither silver nor the quarantine has; `records` has the record of each row."""
        found = as_quarantine(offenders, common_columns(offenders.rows), records)
        games, days = offenders.games.to_numpy(zero_copy_only=False), event_days(found)
        kept = ~rows_of_players(found, self._plan.erased)
        for game in sorted(set(games)):
            table = game_table(game)
            if self._plan.targets and table not in self._plan.targets:
                continue
            for day in np.unique(days[games == game]):
                target = TableDay(QUARANTINE, int(day))
                rows = found.filter(pa.array(kept & (games == game) & (days == day)))
                rows = rows.filter(pa.array(self._missing(table, target, rows)))
                self._know(table, rows)
                self.counts.rows[QUARANTINE] += len(rows)
                if self._plan.purpose is Purpose.WRITE:
                    self._writer.add(target, rows)

    def _missing(self, table: str, target: TableDay, rows: pa.RecordBatch) -> Flags:
        events, partitions = self._presence.events(table, rows), rows.column("kafka_partition").to_numpy()
        missing = self._presence.missing(table, target.date, events, partitions)
        return missing & self._presence.missing(QUARANTINE, target.date, events, partitions)

    def _mark(self, batch: pa.RecordBatch, still: list[int]) -> None:
        """Mark all records as settled, except those that stay in the source."""
        settled, table = batch.filter(pa.array(~np.isin(np.arange(len(batch)), still))), MARKED_IN[self._plan.source]
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
            events=self._known.write() if self._known else None,
            records=counts.records,
            rows={table: rows for table, rows in counts.rows.items() if rows},
            still_dead=dict(counts.still_dead),
            judged=self._judge.judged(),
            erased={table: rows for table, rows in counts.erased.items() if rows},
        )


def _as_records(batch: pa.RecordBatch, decoded: Decoded) -> pa.RecordBatch:
    """Return the columns of the records that the quarantine stores, in the same order."""
    columns = {
        "topic": batch.column("topic"),
        "kafka_timestamp": batch.column("timestamp"),
        "schema_id": schema_ids(decoded, len(batch)),
        "value": batch.column("value"),
    }
    return pa.RecordBatch.from_pydict(columns)
