"""The first half of a batch: decodes and checks records, and passes on the fields that players' states depend on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.contract.games import TextLengths
from gamelake.layers.identity import Identities
from gamelake.layers.routing import Router
from gamelake.ledger.manifests import OffsetRange
from gamelake.ledger.skipped_records import parted
from gamelake.model.arrays import Flags, Ints
from gamelake.model.naming import game_of
from gamelake.schemas.decoder import Decoded
from gamelake.serving.live_ops.plan import LiveOpsPlan
from gamelake.serving.live_ops.signals.counts import COUNTS_SCHEMA, limited, summed
from gamelake.serving.live_ops.states.players import PLAYER_EVENTS_SCHEMA, share_of
from gamelake.serving.live_ops.states.state_files import encode_table
from gamelake.streaming.kafka.reader import TaskFailure
from gamelake.streaming.plan import merge_offsets
from gamelake.streaming.tasks.sorting import RecordCoordinates, RoutedEvents, Sorter
from gamelake.streaming.tasks.task import decoded_portions, kafka_microseconds, offset_ranges, worker_decoder

SESSION_START, PURCHASE, ERROR = "session_start", "purchase", "error"
_MICROS, _MINUTE = 1_000_000, 60_000_000
_LONGEST_VERSION = 32
# A state has several strings and must fit into one Kafka message, whatever length the contract allows.
_LONGEST_TEXT = 4_096


@dataclass(frozen=True, slots=True)
class CheckedEvents:
    """Checked events that belong to a table. All arrays are parallel to the rows.

    Attributes:
        rows: the decoded events; columns depend on the schema.
        tables: the names of all tables, by code.
        codes: int64, the table of each event.
        at: int64, the time at which each event counts, in microseconds since 1970.
        partitions: int64, the Kafka partition of each event.
        taken_seconds: int64, the Kafka timestamp of each event in seconds since 1970, at most the batch's clock.
    """

    rows: pa.RecordBatch
    tables: Sequence[str]
    codes: Ints
    at: Ints
    partitions: Ints
    taken_seconds: Ints

    @classmethod
    def of(
        cls, checked: RoutedEvents, tables: Sequence[str], partitions: Ints, taken: Ints, clock: int
    ) -> "CheckedEvents":
        """Leave out events without a table, and lower event times to the Kafka timestamp and to `clock`.

        Args:
            checked: the checked events; the arrays below are parallel to them.
            tables: the names of all tables, by code.
            partitions: int64, the Kafka partitions.
            taken: int64, the Kafka timestamps in microseconds since 1970.
            clock: the batch's clock in microseconds since 1970.
        """
        placed = np.flatnonzero(checked.codes >= 0)
        at = np.minimum(np.minimum(checked.microseconds, taken), clock)[placed]
        return cls(
            rows=checked.events.take(pa.array(placed)),
            tables=tables,
            codes=checked.codes[placed],
            at=at,
            partitions=partitions[placed],
            taken_seconds=np.minimum(taken, clock)[placed] // _MICROS,
        )

    def text(self, name: str) -> pa.Array:
        """Return a column as strings, one per event, in order; all null if it is missing or has another type."""
        return self._column(name, pa.string())

    def number(self, name: str) -> pa.Array:
        """Return a column as int64, one per event, in order; all null if it is missing or has another type."""
        return self._column(name, pa.int64())

    def _column(self, name: str, arrow: pa.DataType) -> pa.Array:
        place = self.rows.schema.get_field_index(name)
        return (
            self.rows.column(place)
            if place >= 0 and self.rows.schema.types[place] == arrow
            else pa.nulls(len(self.rows), arrow)
        )

    def are(self, event_name: str) -> Flags:
        """Find the events of a name: bool, one for each event, in order."""
        return np.asarray(
            pc.fill_null(pc.equal(self.text("event_name"), event_name), False).to_numpy(zero_copy_only=False)
        )

    def games(self) -> pa.Array:
        """Return the contract's name of each event's game: string, one for each event, in order."""
        names = pa.array([game_of(table) or "" for table in self.tables], pa.string())
        return names.take(pa.array(self.codes))

    def micros(self) -> pa.Array:
        """Return the price in millionths of a US dollar: int64, one for each event, null unless it is a purchase."""
        amount = (
            self.rows.column("amount") if "amount" in self.rows.schema.names else pa.nulls(len(self.rows), pa.float64())
        )
        finite = pc.fill_null(pc.is_finite(amount), False).to_numpy(zero_copy_only=False)
        bought = self.are(PURCHASE) & finite
        values = np.where(bought, pc.fill_null(amount, 0.0).to_numpy(), 0.0)
        # Limit prices to a trillion dollars, so that the product fits into int64.
        values = np.clip(np.nan_to_num(values), -1e12, 1e12)
        return pa.array(np.rint(values * _MICROS).astype(np.int64), mask=~bought)


def player_events(taken: CheckedEvents, identities: Identities, lengths: TextLengths) -> pa.Table:
    """Select the events that have a player, with the fields that the player's state depends on.

    Args:
        taken: the checked events.
        identities: computes the keys of players, sessions and purchases.
        lengths: the contract's maximum lengths; longer strings become null.

    Returns:
        Columns of `PLAYER_EVENTS_SCHEMA`, in order; `at` in microseconds since 1970.
    """
    gamers = _said(taken.text("gamer_id"), lengths.of("gamer_id"))
    named = gamers.is_valid()
    micros = taken.micros()
    keys, _ = identities.of(taken.tables, taken.codes, pc.fill_null(gamers, ""))
    high, rest = _identity(taken, identities, taken.text("event_id"), micros.is_valid())
    sessions, _ = _identity(taken, identities, taken.text("session_id"), pa.array(taken.are(SESSION_START)))
    columns = {
        "key": pa.array(keys),
        "game": taken.games(),
        "gamer_id": gamers,
        "at": pa.array(taken.at),
        "partition": pa.array(taken.partitions),
        "offset": taken.number("kafka_offset"),
        "taken_seconds": pa.array(taken.taken_seconds),
        "session_key": pa.array(sessions.view(np.int64)),
        "micros": micros,
        "event_high": pa.array(high),
        "event_rest": pa.array(rest),
        "level": taken.number("level"),
        **{name: _said(taken.text(name), lengths.of(name)) for name in ("platform", "app_version", "country")},
    }
    return pa.table(columns, schema=PLAYER_EVENTS_SCHEMA).filter(named)


def _said(texts: pa.Array, longest: int) -> pa.Array:
    """Replace strings that are too long or empty by null; Protobuf can't tell an empty string from a missing one."""
    lengths = pc.binary_length(texts)
    is_said = pc.and_(pc.greater(lengths, 0), pc.less_equal(lengths, min(longest, _LONGEST_TEXT)))
    return pc.if_else(is_said, texts, pa.scalar(None, pa.string()))


def _identity(
    taken: CheckedEvents, identities: Identities, texts: pa.Array, wanted: pa.Array
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the identities of the texts of wanted rows; without a text, that of the record; 0 for other rows."""
    high, rest = np.zeros(len(texts), np.uint64), np.zeros(len(texts), np.uint64)
    rows = np.flatnonzero(wanted.to_numpy(zero_copy_only=False))
    if len(rows):
        place = pc.binary_join_element_wise(
            pa.array(taken.partitions[rows]).cast(pa.string()),
            taken.number("kafka_offset").take(pa.array(rows)).cast(pa.string()),
            "/",
        )
        given = texts.take(pa.array(rows))
        given = pc.if_else(pc.fill_null(pc.greater(pc.binary_length(given), 0), False), given, place)
        high[rows], rest[rows] = identities.of(taken.tables, taken.codes[rows], given)
    return high, rest


def minute_counts(taken: CheckedEvents) -> pa.Table:
    """Count the events of each minute: columns of `COUNTS_SCHEMA`, one row for each minute, game and version."""
    micros = taken.micros()
    versions = pc.utf8_slice_codeunits(pc.fill_null(taken.text("app_version"), ""), 0, _LONGEST_VERSION)
    columns = {
        "minute": pa.array(taken.at // _MINUTE),
        "game": taken.games(),
        "app_version": versions,
        "events": pa.array(np.ones(len(taken.at), np.int64)),
        "errors": pa.array(taken.are(ERROR).astype(np.int64)),
        "purchases": micros.is_valid().cast(pa.int64()),
        "bookings_micros": pc.fill_null(micros, 0),
    }
    return limited(summed([pa.table(columns, schema=COUNTS_SCHEMA)]))


# The rows that each task of the first half of a batch sends to the second half: always one for each share.
SHARE_TYPES = "share int, events binary"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a task about the records that it read.

    Attributes:
        offsets: the offsets of the records.
        newest: the newest event time of each Kafka partition, in microseconds since 1970.
        counts: an encoded table with the columns of `COUNTS_SCHEMA`; see `encode_table`.
        skipped: the number of records that were not decoded because they make tasks fail.
    """

    offsets: tuple[OffsetRange, ...]
    newest: dict[int, int]
    counts: bytes
    skipped: int = 0


class ShareEvents(msgspec.Struct, frozen=True, kw_only=True):
    """The message of a task of the first half to a task of the second half.

    Attributes:
        newest: the newest event time that the task read, in microseconds since 1970; 0 if there is none.
        player_events: an encoded table with the columns of `PLAYER_EVENTS_SCHEMA`; see `encode_table`.
        reading: the task's report, in the message to the first share only.
        failure: the reason why the task could not read all its records; no share may be updated then.
    """

    newest: int
    player_events: bytes
    reading: Reading | None = None
    failure: TaskFailure | None = None


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Decodes and checks the records of a task; Spark sends it to the workers (`mapInArrow`).

    Attributes:
        plan: the plan of the batch.
    """

    plan: LiveOpsPlan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode and check all records of a task.

        Args:
            batches: Kafka records, in the order of their offsets.

        Yields:
            If there are records, one row for each share: columns `share` (int32) and `events` (binary).
        """
        reader = _Reader(self.plan)
        for batch in batches:
            reader.take(batch)
        if reader.offsets:
            yield reader.share_events()

    def failed(self, failure: TaskFailure) -> pa.RecordBatch:
        """Return one row with the failure for each share: columns `share` (int32) and `events` (binary)."""
        share = ShareEvents(newest=0, player_events=b"", failure=failure)
        return _share_rows([share] * self.plan.state.shares)


class _Reader:
    """Decodes records like the fan-out, and keeps the fields that states and counts depend on."""

    def __init__(self, plan: LiveOpsPlan) -> None:
        self._plan = plan.state
        self._skip = plan.reading.skipped
        self._skipped = 0
        self._lengths = plan.reading.contract.lengths
        self._decoder = worker_decoder(plan.reading)
        router = Router(plan.reading.contract, plan.reading.unlisted_tables)
        self._sorter = Sorter(router, plan.reading.contract, dict(plan.reading.schemas))
        self._identities = Identities(plan.state.seed)
        self._player_events: list[pa.Table] = [PLAYER_EVENTS_SCHEMA.empty_table()]
        self._counts: list[pa.Table] = [COUNTS_SCHEMA.empty_table()]
        self._newest: dict[int, int] = {}
        self.offsets: list[OffsetRange] = []

    def take(self, batch: pa.RecordBatch) -> None:
        """Decode and check one batch of records; ignore dead letters, which the fan-out stores."""
        self.offsets.extend(offset_ranges(batch))
        batch, left_out = parted(batch, self._skip)
        self._skipped += sum(len(records) for records, _ in left_out)
        for records, decoded in decoded_portions(self._decoder, batch):
            self._take(records, decoded)

    def _take(self, batch: pa.RecordBatch, decoded: Decoded) -> None:
        partitions = batch.column("partition").cast(pa.int64())
        placement = RecordCoordinates(partitions, batch.column("offset"), kafka_microseconds(batch))
        for group in decoded.groups:
            checked = self._sorter.check(group, placement, decoded.rejects)
            if checked is not None:
                rows = group.rows
                self._keep(
                    CheckedEvents.of(
                        checked,
                        self._sorter.router.tables,
                        partitions.to_numpy()[rows],
                        placement.kafka_microseconds[rows],
                        self._plan.clock,
                    )
                )

    def _keep(self, taken: CheckedEvents) -> None:
        if not len(taken.at):
            return
        self._player_events.append(player_events(taken, self._identities, self._lengths))
        self._counts.append(minute_counts(taken))
        for partition in np.unique(taken.partitions):
            newest = int(taken.at[taken.partitions == partition].max())
            self._newest[int(partition)] = max(newest, self._newest.get(int(partition), 0))

    def share_events(self) -> pa.RecordBatch:
        """Return one row for each share, the first with the reading."""
        happened = pa.concat_tables(self._player_events).combine_chunks()
        shares = share_of(happened["key"].to_numpy(), self._plan.shares)
        newest = max(self._newest.values(), default=0)
        counts = encode_table(limited(summed(self._counts)))
        reading = Reading(
            offsets=merge_offsets(self.offsets), newest=self._newest, counts=counts, skipped=self._skipped
        )
        share_events = [
            ShareEvents(
                newest=newest,
                player_events=encode_table(happened.filter(pa.array(shares == share))),
                reading=None if share else reading,
            )
            for share in range(self._plan.shares)
        ]
        return _share_rows(share_events)


def _share_rows(share_events: Sequence[ShareEvents]) -> pa.RecordBatch:
    encoded = [msgspec.msgpack.encode(each) for each in share_events]
    return pa.RecordBatch.from_arrays(
        [pa.array(range(len(share_events)), pa.int32()), pa.array(encoded, pa.binary())], names=["share", "events"]
    )
