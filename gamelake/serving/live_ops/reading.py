"""The first half of a batch: records to what matters of them, handed on to the tasks that have the players' states."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.layers.identity import Identities
from gamelake.layers.routing import Router
from gamelake.model.naming import game_of
from gamelake.serving.live_ops.counts import COUNTS_SCHEMA, limited, summed
from gamelake.serving.live_ops.plan import LiveOpsPlan
from gamelake.serving.live_ops.players import PLAYER_EVENTS_SCHEMA, Flags, Ints, share_of
from gamelake.serving.live_ops.state_files import encode_table
from gamelake.storage.manifests import OffsetRange
from gamelake.storage.store import Store
from gamelake.streaming.kafka_reader import ReadFailure
from gamelake.streaming.plan import merge_offsets
from gamelake.streaming.sorting import RecordCoordinates, RoutedEvents, Sorter
from gamelake.streaming.task import kafka_microseconds, offset_ranges, worker_decoder

SESSION_START, PURCHASE, ERROR = "session_start", "purchase", "error"
_MICROS, _MINUTE = 1_000_000, 60_000_000
_LONGEST_VERSION = 32


@dataclass(frozen=True, slots=True)
class CheckedEvents:
    """Checked events that have a place, with when each counts as having happened, and where Kafka has it."""

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
        """Leave out what has no place; no event is later than its Kafka timestamp, nor than `clock`."""
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
        """A column of texts; null where these events have none, or something else under its name."""
        return self._column(name, pa.string())

    def number(self, name: str) -> pa.Array:
        """A column of whole numbers."""
        return self._column(name, pa.int64())

    def _column(self, name: str, arrow: pa.DataType) -> pa.Array:
        place = self.rows.schema.get_field_index(name)
        return (
            self.rows.column(place)
            if place >= 0 and self.rows.schema.types[place] == arrow
            else pa.nulls(len(self.rows), arrow)
        )

    def are(self, event_name: str) -> Flags:
        """Which events have a name: one bool for each event, in order."""
        return np.asarray(
            pc.fill_null(pc.equal(self.text("event_name"), event_name), False).to_numpy(zero_copy_only=False)
        )

    def games(self) -> pa.Array:
        """The game of each event by the contract: string, one for each event, in order."""
        names = pa.array([game_of(table) or "" for table in self.tables])
        return names.take(pa.array(self.codes))

    def micros(self) -> pa.Array:
        """What was paid, in millionths of a US dollar: int64, one for each event, null unless it is a purchase."""
        amount = (
            self.rows.column("amount") if "amount" in self.rows.schema.names else pa.nulls(len(self.rows), pa.float64())
        )
        finite = pc.fill_null(pc.is_finite(amount), False).to_numpy(zero_copy_only=False)
        bought = self.are(PURCHASE) & finite
        values = np.where(bought, pc.fill_null(amount, 0.0).to_numpy(), 0.0)
        # More than a trillion dollars is no price.
        values = np.clip(np.nan_to_num(values), -1e12, 1e12)
        return pa.array(np.rint(values * _MICROS).astype(np.int64), mask=~bought)


def player_events(taken: CheckedEvents, identities: Identities) -> pa.Table:
    """The events that have a player: columns of `PLAYER_EVENTS_SCHEMA`, in order; `at` in microseconds since 1970."""
    gamers = taken.text("gamer_id")
    named = pc.fill_null(pc.greater(pc.binary_length(gamers), 0), False)
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
        **{name: _said(taken.text(name)) for name in ("platform", "app_version", "country")},
    }
    return pa.table(columns, schema=PLAYER_EVENTS_SCHEMA).filter(named)


def _said(texts: pa.Array) -> pa.Array:
    """Texts with null for the empty one: Protobuf does not distinguish it from one that is not set."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _identity(
    taken: CheckedEvents, identities: Identities, texts: pa.Array, wanted: pa.Array
) -> tuple[np.ndarray, np.ndarray]:
    """Identities of what some rows name, of the row itself where it names nothing; 0 for the other rows."""
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
    """The counts of events: columns of `COUNTS_SCHEMA`, one row for each minute, game and version."""
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


# What goes from the first half of a batch to the second: one row for each task of the second, whatever is in it.
SHARE_TYPES = "share int, events binary"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a task has read: offsets, the newest moment of each Kafka partition, and the counts of minutes."""

    offsets: tuple[OffsetRange, ...]
    newest: dict[int, int]
    counts: bytes


class ShareEvents(msgspec.Struct, frozen=True, kw_only=True):
    """What one task hands to another one: the newest moment that it met, what players did, and to one its reading.

    Attributes:
        failure: why the task could not read all its records; no share may be updated then.
    """

    newest: int
    player_events: bytes
    reading: Reading | None = None
    failure: ReadFailure | None = None


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Decodes and checks the records of a task, for the tasks that have the players' states."""

    plan: LiveOpsPlan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode and check all records; yield one row for each share of the players."""
        reader = _Reader(self.plan)
        for batch in batches:
            reader.take(batch)
        if reader.offsets:
            yield reader.share_events()

    def failed(self, failure: ReadFailure) -> pa.RecordBatch:
        """One row with the failure for each share of the players: columns `share` (int32) and `events` (binary)."""
        share = ShareEvents(newest=0, player_events=b"", failure=failure)
        return _share_rows([share] * self.plan.state.shares)


class _Reader:
    """Takes records as the fan-out does, and keeps of them what matters."""

    def __init__(self, plan: LiveOpsPlan) -> None:
        self._plan = plan.state
        self._decoder = worker_decoder(plan.reading, Store(plan.reading.lakehouse))
        router = Router(plan.reading.contract, plan.reading.unlisted_tables)
        self._sorter = Sorter(router, plan.reading.contract, dict(plan.reading.schemas))
        self._identities = Identities(plan.state.seed)
        self._player_events: list[pa.Table] = [PLAYER_EVENTS_SCHEMA.empty_table()]
        self._counts: list[pa.Table] = [COUNTS_SCHEMA.empty_table()]
        self._newest: dict[int, int] = {}
        self.offsets: list[OffsetRange] = []

    def take(self, batch: pa.RecordBatch) -> None:
        """Decode and check one batch of records; what would be a dead letter is left to the fan-out."""
        self.offsets.extend(offset_ranges(batch))
        decoded = self._decoder.decode(batch.column("value"))
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
        self._player_events.append(player_events(taken, self._identities))
        self._counts.append(minute_counts(taken))
        for partition in np.unique(taken.partitions):
            newest = int(taken.at[taken.partitions == partition].max())
            self._newest[int(partition)] = max(newest, self._newest.get(int(partition), 0))

    def share_events(self) -> pa.RecordBatch:
        """One row for each share, the reading with the first."""
        happened = pa.concat_tables(self._player_events).combine_chunks()
        shares = share_of(happened["key"].to_numpy(), self._plan.shares)
        newest = max(self._newest.values(), default=0)
        counts = encode_table(limited(summed(self._counts)))
        reading = Reading(offsets=merge_offsets(self.offsets), newest=self._newest, counts=counts)
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
