"""Checks decoded events and sorts them by table and day."""

from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.layers.routing import NOWHERE, Router
from gamelake.layers.silver import conform, with_ingest_times
from gamelake.model.clocks import TOLERATED_SKEW
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import IncompatibleSchemaError
from gamelake.model.games import EventTimeLimits, GamesContract
from gamelake.quality.judging import Judge, NoOpJudge
from gamelake.schemas.decoder import DecodedGroup, Rejects
from gamelake.schemas.framing import MessageType
from gamelake.storage.columns import merged
from gamelake.streaming.duplicates import CandidateEvents, DuplicateFilter, NoOpDuplicateFilter
from gamelake.streaming.message_mapping import MessageMapper
from gamelake.streaming.plan import NO_CLOCK

MICROSECONDS_A_DAY = 86_400_000_000
Ints = npt.NDArray[np.int64]
_CLOCK_SKEW = TOLERATED_SKEW // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class RowRun:
    """Rows of one table and one day (since 1970, UTC); `schema_id` is that of their messages."""

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
    """The Kafka coordinates of a batch's records (int64, one per record): partition, offset, and timestamp."""

    partitions: pa.Array
    offsets: pa.Array
    kafka_microseconds: Ints


@dataclass(slots=True)
class Sorter:
    """Sorts events by table and day; adds new columns to the known columns of the tables.

    Attributes:
        router: chooses the tables.
        contract: has the mappings of messages and the limits of values.
        schemas: the known columns, by table.
        filter: finds duplicates.
        judge: applies the rules.
        clock: when the batch was planned, in microseconds since 1970; no event arrives later by more than
            `TOLERATED_SKEW`, whatever its producer's clock says.
    """

    router: Router
    contract: GamesContract
    schemas: dict[str, pa.Schema]
    filter: DuplicateFilter = field(default_factory=NoOpDuplicateFilter)
    judge: Judge = field(default_factory=NoOpJudge)
    clock: int = NO_CLOCK
    _mapper: MessageMapper = field(init=False)
    _partitioned: dict[str, frozenset[str]] = field(init=False)
    _verdicts: dict[tuple[MessageType, int], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the text columns that partition a table, and these tables."""
        self._mapper = MessageMapper(self.contract.messages)
        columns = {column.value for game in self.contract.games for column in game.partition_by[1:]}
        self._partitioned = {
            name: frozenset(game.table for game in self.contract.games if name in game.partition_by[1:])
            for name in sorted(columns)
        }

    def sort(self, group: DecodedGroup, placement: RecordCoordinates, rejects: Rejects) -> list[RowRun]:
        """Sort one group of events.

        Args:
            group: events of one message type, and their row numbers in the batch.
            placement: the coordinates of all records of the batch.
            rejects: events that fail a check are added to it.

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
        """Check one group of events, as in `sort`; None if none of them passes."""
        rows = pa.array(group.rows)
        try:
            columns = self._mapper.apply(group.name, group.columns)
            events = conform(columns, placement.partitions.take(rows), placement.offsets.take(rows))
        except IncompatibleSchemaError as error:
            rejects.add(group.rows, DeadLetterReason.INCOMPATIBLE_SCHEMA, str(error))
            return None
        events = with_ingest_times(events, self._arrived(group, placement), _microseconds(self._limits.max_age))
        microseconds, codes = self._check(events, group, placement, rejects)
        return RoutedEvents(self._without_empty_partitions(events, codes), microseconds, codes)

    def _without_empty_partitions(self, events: pa.RecordBatch, codes: Ints) -> pa.RecordBatch:
        """Null for an empty text in a column that partitions the event's table.

        Delta has no empty partition value, it is null: all tables that the event is written to get the same value.
        Source: Delta Transaction Log Protocol, heading "Partition Value Serialization".
        """
        for name, tables in self._partitioned.items():
            place = events.schema.get_field_index(name)
            found = [code for code, table in enumerate(self.router.tables) if table in tables]
            if place < 0 or not found:
                continue
            texts = events.column(place)
            empty = np.isin(codes, found) & (pc.fill_null(pc.binary_length(texts), 1).to_numpy() == 0)
            if empty.any():
                filled = pc.if_else(pa.array(empty), pa.scalar(None, texts.type), texts)
                events = events.set_column(place, events.schema.field(place), filled)
        return events

    @property
    def _limits(self) -> EventTimeLimits:
        return self.contract.event_time

    def _arrived(self, group: DecodedGroup, placement: RecordCoordinates) -> Ints:
        """When each event arrived, in microseconds: Kafka's timestamp, which a producer may have set to the future."""
        taken = placement.kafka_microseconds[group.rows]
        # No sum with the clock, which may be the greatest number.
        return np.where(taken - _CLOCK_SKEW > self.clock, self.clock, taken)

    def _check(
        self, events: pa.RecordBatch, group: DecodedGroup, placement: RecordCoordinates, rejects: Rejects
    ) -> tuple[Ints, Ints]:
        """Event times (microseconds) and table codes; the code of a rejected event is NOWHERE."""
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
        """One absurd amount would make a sum of all players absurd, and no decimal number can have it."""
        if "amount" not in events.schema.names:
            return codes
        amounts = np.abs(pc.fill_null(events.column("amount"), 0.0).to_numpy())
        largest = self.contract.amount.max
        # NaN is not less than anything.
        failed = ~(amounts <= largest) & (codes != NOWHERE)
        if not failed.any():
            return codes
        detail = f"amount is no finite number, or further from zero than {largest:.12g}"
        rejects.add(group.rows[failed], DeadLetterReason.IMPLAUSIBLE_AMOUNT, detail)
        return np.where(failed, NOWHERE, codes)

    def _limits_text(self) -> str:
        return f"more than {self._limits.max_age.days} days before or {self._limits.max_ahead} after Kafka took it in"

    def _without_incompatible(self, schema: pa.Schema, group: DecodedGroup, codes: Ints, rejects: Rejects) -> Ints:
        for code in np.unique(codes):
            problem = "" if code == NOWHERE else self._incompatible(group.message_type, schema, int(code))
            if problem:
                failed = codes == code
                rejects.add(group.rows[failed], DeadLetterReason.INCOMPATIBLE_SCHEMA, problem)
                codes = np.where(failed, NOWHERE, codes)
        return codes

    def _incompatible(self, message_type: MessageType, schema: pa.Schema, code: int) -> str:
        """Why a table's columns conflict with these; empty if they don't, and then the table's columns are widened."""
        if (message_type, code) not in self._verdicts:
            table = self.router.tables[code]
            known = self.schemas.get(table)
            try:
                self.schemas[table] = merged(pa.schema([]) if known is None else known, schema)
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
    """The days of events since 1970 in UTC (int64, one per row), from the column event_time, which has no nulls."""
    return np.asarray(np.floor_divide(events.column("event_time").cast(pa.int64()).to_numpy(), MICROSECONDS_A_DAY))


def _is_identity(chosen: Ints, length: int) -> bool:
    return len(chosen) == length and bool((chosen == np.arange(length)).all())


def _microseconds(duration: timedelta) -> int:
    return int(duration.total_seconds() * 1_000_000)
