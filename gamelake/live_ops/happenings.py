"""Checked events as what matters of them: to their players' states, and to the counts of their minutes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.fanout.sorting import Checked
from gamelake.live_ops.counts import COUNTS_SCHEMA, limited, summed
from gamelake.live_ops.players import HAPPENINGS_SCHEMA, Flags, Ints
from gamelake.naming import game_of
from gamelake.silver.identity import Identities

SESSION_START, PURCHASE, ERROR = "session_start", "purchase", "error"
_MICROS, _MINUTE = 1_000_000, 60_000_000
_LONGEST_VERSION = 32


@dataclass(frozen=True, slots=True)
class Taken:
    """Checked events that have a place, with when each counts as having happened, and where Kafka has it."""

    rows: pa.RecordBatch
    tables: Sequence[str]
    codes: Ints
    at: Ints
    partitions: Ints
    taken_seconds: Ints

    @classmethod
    def of(cls, checked: Checked, tables: Sequence[str], partitions: Ints, taken: Ints, clock: int) -> "Taken":
        """Leave out what has no place; nothing happens after Kafka was told of it, nor after `clock`."""
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
        """Which of the events have a name."""
        return np.asarray(
            pc.fill_null(pc.equal(self.text("event_name"), event_name), False).to_numpy(zero_copy_only=False)
        )

    def games(self) -> pa.Array:
        """The games' names in the contract."""
        names = pa.array([game_of(table) or "" for table in self.tables])
        return names.take(pa.array(self.codes))

    def micros(self) -> pa.Array:
        """What was paid, in millionths of a US dollar; null where nothing was bought."""
        amount = (
            self.rows.column("amount") if "amount" in self.rows.schema.names else pa.nulls(len(self.rows), pa.float64())
        )
        finite = pc.fill_null(pc.is_finite(amount), False).to_numpy(zero_copy_only=False)
        bought = self.are(PURCHASE) & finite
        values = np.where(bought, pc.fill_null(amount, 0.0).to_numpy(), 0.0)
        # More than a trillion dollars is no price.
        values = np.clip(np.nan_to_num(values), -1e12, 1e12)
        return pa.array(np.rint(values * _MICROS).astype(np.int64), mask=~bought)


def happenings(taken: Taken, identities: Identities) -> pa.Table:
    """What players did; an event without a player is nobody's."""
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
    return pa.table(columns, schema=HAPPENINGS_SCHEMA).filter(named)


def _said(texts: pa.Array) -> pa.Array:
    """Texts of which an empty one says nothing: Protobuf does not tell it from one that is not set."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _identity(taken: Taken, identities: Identities, texts: pa.Array, wanted: pa.Array) -> tuple[np.ndarray, np.ndarray]:
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


def minute_counts(taken: Taken) -> pa.Table:
    """How much happened in each minute of each version of each game."""
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
