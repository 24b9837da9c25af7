"""Checks decoded events and sorts them by table and day."""

from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.contract.games import EventTimeLimits, GamesContract
from gamelake.delta.columns import delta_schema_json, merged
from gamelake.layers.routing import NOWHERE, Router
from gamelake.layers.silver import COMMON_SCHEMA, conform, with_ingest_times
from gamelake.model.arrays import Ints
from gamelake.model.clocks import TOLERATED_SKEW
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import IncompatibleSchemaError
from gamelake.quality.judging import Judge, NoOpJudge
from gamelake.schemas.decoder import DecodedGroup, Rejects
from gamelake.schemas.framing import MessageType
from gamelake.schemas.text_lengths import too_long_texts
from gamelake.streaming.dedup.candidates import CandidateEvents
from gamelake.streaming.dedup.duplicates import DuplicateFilter
from gamelake.streaming.message_mapping import MessageMapper
from gamelake.streaming.plan import NO_CLOCK
from gamelake.streaming.tasks.partition_limits import LONGEST_VALUE, MOST_PARTITIONS, PartitionLimit

MICROSECONDS_A_DAY = 86_400_000_000
_PARTITION_LIMITS = (
    f"a task writes to {MOST_PARTITIONS} partitions at most, those of most events, with values of {LONGEST_VALUE} bytes"
)
_CLOCK_SKEW = TOLERATED_SKEW // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class RowRun:
    """Rows of one table and one day.

    Attributes:
        table: the name of the table.
        day: the number of days since 1970, in UTC.
        rows: in the columns of silver, in the order of the records.
        schema_id: the id of the schema of the rows' messages.
    """

    table: str
    day: int
    rows: pa.RecordBatch
    schema_id: int


@dataclass(frozen=True, slots=True)
class RoutedEvents:
    """Checked events; the arrays (int64) have one element per event, in order.

    Attributes:
        events: in the columns of silver.
        microseconds: the event time in microseconds since 1970.
        codes: the index of the event's table in the router's tables, or NOWHERE.
    """

    events: pa.RecordBatch
    microseconds: Ints
    codes: Ints


@dataclass(slots=True)
class RecordCoordinates:
    """The Kafka coordinates of a batch's records, one element per record, in order.

    Attributes:
        partitions: the Kafka partitions (int64).
        offsets: the Kafka offsets (int64).
        kafka_microseconds: the Kafka timestamps in microseconds since 1970 (int64).
    """

    partitions: pa.Array
    offsets: pa.Array
    kafka_microseconds: Ints


@dataclass(slots=True)
class Sorter:
    """Sorts events by table and day; adds new columns to the known columns of the tables.

    Attributes:
        router: chooses the tables.
        contract: has the mappings of messages and the limits of values.
        schemas: the known columns by table name; `sort` and `check` add new columns.
        filter: finds duplicates.
        judge: applies the rules.
        clock: when the batch was planned, in microseconds since 1970; no event arrives later by more than
            `TOLERATED_SKEW`, whatever its producer's clock says.
    """

    router: Router
    contract: GamesContract
    schemas: dict[str, pa.Schema]
    filter: DuplicateFilter = field(default_factory=DuplicateFilter)
    judge: Judge = field(default_factory=NoOpJudge)
    clock: int = NO_CLOCK
    _mapper: MessageMapper = field(init=False)
    _partitioned: dict[str, frozenset[str]] = field(init=False)
    _verdicts: dict[tuple[MessageType, int], str] = field(default_factory=dict)
    _partition_limit: PartitionLimit = field(default_factory=PartitionLimit)

    def __post_init__(self) -> None:
        """Find the text columns that partition tables, and the tables that each of them partitions."""
        self._mapper = MessageMapper(self.contract.messages)
        columns = {column.value for game in self.contract.games for column in game.partition_by[1:]}
        self._partitioned = {
            name: frozenset(game.table for game in self.contract.games if name in game.partition_by[1:])
            for name in sorted(columns)
        }

    def sort(self, group: DecodedGroup, placement: RecordCoordinates, rejects: Rejects) -> list[RowRun]:
        """Sort one group of events.

        Args:
            group: events of one message type, and their row numbers in the batch (int64, one per event).
            placement: the coordinates of all records of the batch.
            rejects: the method adds the events that fail a check, by their row numbers in the batch.

        Returns:
            Rows without duplicates and without events that rules exclude, in the order of day, then table.
        """
        checked = self.check(group, placement, rejects)
        if checked is None:
            return []
        partitions = placement.partitions.take(pa.array(group.rows)).to_numpy()
        kafka_microseconds = placement.kafka_microseconds[group.rows]
        seen = CandidateEvents(checked.events, self.router.tables, checked.codes, partitions, kafka_microseconds)
        # Duplicates are found first: an event that breaks a rule counts as ingested, and its duplicate as a duplicate.
        codes = np.where(self.filter.duplicates(seen), NOWHERE, checked.codes)
        broken = self.judge.exclude(checked.events, self.router.tables, codes, group.rows)
        codes = np.where(broken, NOWHERE, codes)
        return self._runs(checked.events, checked.microseconds, codes, group.message_type.schema_id)

    def check(self, group: DecodedGroup, placement: RecordCoordinates, rejects: Rejects) -> RoutedEvents | None:
        """Check one group of events, with the arguments of `sort`.

        Returns:
            All events of the group in order, with the code NOWHERE for rejected ones; None if the columns of the group
            are incompatible with silver, so that all events are rejected.
        """
        rows = pa.array(group.rows)
        try:
            columns = self._mapper.apply(group.name, group.columns)
            events = conform(columns, placement.partitions.take(rows), placement.offsets.take(rows))
        except IncompatibleSchemaError as error:
            rejects.add(group.rows, DeadLetterReason.INCOMPATIBLE_SCHEMA, str(error))
            return None
        events = with_ingest_times(events, self._arrived(group, placement), _microseconds(self._limits.max_age))
        microseconds, codes = self._check(events, group, placement, rejects)
        # For a mapped message the contract limits only the columns that all events share.
        shared = [name for name in columns.schema.names if name in COMMON_SCHEMA.names]
        texts = columns if columns is group.columns else columns.select(shared)
        codes = self._without_long_texts(texts, group, codes, rejects)
        codes = self._without_excess_partitions(events, microseconds, group, codes, rejects)
        return RoutedEvents(events, microseconds, codes)

    @property
    def _limits(self) -> EventTimeLimits:
        return self.contract.event_time

    def _arrived(self, group: DecodedGroup, placement: RecordCoordinates) -> Ints:
        """Return the arrival of each event (microseconds, int64); a Kafka timestamp in the future becomes the clock."""
        taken = placement.kafka_microseconds[group.rows]
        # Subtracted rather than added to the clock, which may be the largest int64.
        return np.where(taken - _CLOCK_SKEW > self.clock, self.clock, taken)

    def _check(
        self, events: pa.RecordBatch, group: DecodedGroup, placement: RecordCoordinates, rejects: Rejects
    ) -> tuple[Ints, Ints]:
        """Return event times (microseconds) and table codes, one per event; the code of a rejected event is NOWHERE."""
        time_column = events.column("event_time")
        has_time = np.asarray(time_column.is_valid().to_numpy(zero_copy_only=False), bool)
        microseconds = pc.fill_null(time_column.cast(pa.int64()), 0).to_numpy()
        codes = self.router.route(events.column("game_name"))
        ahead = microseconds - placement.kafka_microseconds[group.rows]
        plausible = (ahead <= _microseconds(self._limits.max_ahead)) & (ahead >= -_microseconds(self._limits.max_age))
        checks = (
            (~has_time, DeadLetterReason.NO_EVENT_TIME, "the event has no event_time"),
            (has_time & ~plausible, DeadLetterReason.IMPLAUSIBLE_EVENT_TIME, self._limits_text()),
            (has_time & plausible & (codes == NOWHERE), DeadLetterReason.UNROUTABLE, "no table takes this game_name"),
        )
        for failed, reason, detail in checks:
            if failed.any():
                rejects.add(group.rows[failed], reason, detail)
                codes = np.where(failed, NOWHERE, codes)
        codes = self._without_absurd_amounts(events, group, codes, rejects)
        return microseconds, self._without_incompatible(events.schema, group, codes, rejects)

    def _without_absurd_amounts(
        self, events: pa.RecordBatch, group: DecodedGroup, codes: Ints, rejects: Rejects
    ) -> Ints:
        """Reject events whose amount exceeds the contract's limit, and return the table codes.

        One absurd amount would distort the sum of all players, and may not fit a decimal column.
        """
        if "amount" not in events.schema.names:
            return codes
        amounts = np.abs(pc.fill_null(events.column("amount"), 0.0).to_numpy())
        largest = self.contract.amount.max
        # NaN is not less than anything.
        failed = ~(amounts <= largest) & (codes != NOWHERE)
        if not failed.any():
            return codes
        detail = f"amount is not a finite number, or further from zero than {largest:.12g}"
        rejects.add(group.rows[failed], DeadLetterReason.IMPLAUSIBLE_AMOUNT, detail)
        return np.where(failed, NOWHERE, codes)

    def _without_long_texts(self, texts: pa.RecordBatch, group: DecodedGroup, codes: Ints, rejects: Rejects) -> Ints:
        lengths = self.contract.lengths
        for name, column in zip(texts.schema.names, texts.columns, strict=True):
            for path, places in too_long_texts(column, name, lengths, with_bytes=False):
                failed = places[codes[places] != NOWHERE]
                detail = f"{path} has more than {lengths.of(path)} bytes (lengths in contracts/games.yaml)"
                rejects.add(group.rows[failed], DeadLetterReason.TOO_LONG, detail)
                codes = codes.copy()
                codes[failed] = NOWHERE
        return codes

    def _without_excess_partitions(
        self, events: pa.RecordBatch, microseconds: Ints, group: DecodedGroup, codes: Ints, rejects: Rejects
    ) -> Ints:
        for code, table in enumerate(self.router.tables) if self._partitioned else ():
            names = [name for name, tables in self._partitioned.items() if table in tables]
            rows = np.flatnonzero(codes == code) if names else np.zeros(0, np.int64)
            if not len(rows):
                continue
            columns = [events.column(name).take(pa.array(rows)) for name in names if name in events.schema.names]
            days = np.floor_divide(microseconds[rows], MICROSECONDS_A_DAY)
            excess = rows[self._partition_limit.excess(table, days, columns)]
            if len(excess):
                detail = f"{table} is partitioned by {', '.join(names)}: {_PARTITION_LIMITS}"
                rejects.add(group.rows[excess], DeadLetterReason.TOO_MANY_PARTITIONS, detail)
                codes = codes.copy()
                codes[excess] = NOWHERE
        return codes

    def _limits_text(self) -> str:
        return f"more than {self._limits.max_age.days} days before or {self._limits.max_ahead} after Kafka received it"

    def _without_incompatible(self, schema: pa.Schema, group: DecodedGroup, codes: Ints, rejects: Rejects) -> Ints:
        for code in np.unique(codes):
            problem = "" if code == NOWHERE else self._incompatible(group.message_type, schema, int(code))
            if problem:
                failed = codes == code
                rejects.add(group.rows[failed], DeadLetterReason.INCOMPATIBLE_SCHEMA, problem)
                codes = np.where(failed, NOWHERE, codes)
        return codes

    def _incompatible(self, message_type: MessageType, schema: pa.Schema, code: int) -> str:
        """Return the reason why a table's columns conflict with a schema; "" if they don't, after widening them."""
        if (message_type, code) not in self._verdicts:
            table = self.router.tables[code]
            known = self.schemas.get(table)
            try:
                widened = merged(pa.schema([]) if known is None else known, schema)
                delta_schema_json(widened)
                self.schemas[table] = widened
                self._verdicts[message_type, code] = ""
            except IncompatibleSchemaError as error:
                self._verdicts[message_type, code] = str(error)
        return self._verdicts[message_type, code]

    def _runs(self, events: pa.RecordBatch, microseconds: Ints, codes: Ints, schema_id: int) -> list[RowRun]:
        placed = np.flatnonzero(codes != NOWHERE)
        if not len(placed):
            return []
        days = np.floor_divide(microseconds[placed], MICROSECONDS_A_DAY)
        key = (days - days.min()) * len(self.router.tables) + codes[placed]
        # numpy's stable sort is a radix sort for 16 bits, several times faster than for 64.
        key = key.astype(np.int16) if key.max() < 2**15 else key
        order = np.argsort(key, kind="stable")
        chosen = placed[order]
        taken = events if _is_identity(chosen, len(events)) else events.take(pa.array(chosen))
        sorted_key = key[order]
        starts = [0, *(np.flatnonzero(np.diff(sorted_key)) + 1), len(order)]
        return [
            RowRun(self.router.tables[codes[chosen[a]]], int(days[order[a]]), taken.slice(a, b - a), schema_id)
            for a, b in pairwise(starts)
        ]


def event_days(events: pa.RecordBatch) -> Ints:
    """Compute the days of events, from the column event_time, which must have no nulls.

    Returns:
        The number of days since 1970 in UTC (int64), one per row, in order.
    """
    return np.asarray(np.floor_divide(events.column("event_time").cast(pa.int64()).to_numpy(), MICROSECONDS_A_DAY))


def _is_identity(chosen: Ints, length: int) -> bool:
    return len(chosen) == length and bool((chosen == np.arange(length)).all())


def _microseconds(duration: timedelta) -> int:
    return int(duration.total_seconds() * 1_000_000)
