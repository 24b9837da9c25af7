"""The state of each player, and its updates from new events: pure functions for many players at once."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.model.arrays import Flags, Ints, Words
from gamelake.serving.live_ops.plan import BUCKETS

HOUR = 3_600_000_000  # microseconds
_ATTRIBUTES = {"level": pa.int64(), "platform": pa.string(), "app_version": pa.string(), "country": pa.string()}
_SUMS = ("sessions", "purchases", "bookings_micros", "purchases_last_hour", "spend_last_hour_micros")
MOMENTS = ("first_seen", "last_seen", "last_purchase", "as_of")

# Times are microseconds since 1970, 0 for never.
STATE_SCHEMA = pa.schema(
    [
        pa.field("key", pa.uint64()),
        pa.field("erased", pa.bool_()),
        pa.field("game", pa.string()),
        pa.field("gamer_id", pa.string()),
        *(pa.field(name, arrow) for name, arrow in _ATTRIBUTES.items()),
        *(pa.field(name, pa.int64()) for name in (*_SUMS, *MOMENTS)),
        *(pa.field(f"{name}_at", pa.int64()) for name in _ATTRIBUTES),
        pa.field("session_key", pa.int64()),
    ]
)

# The fields of an event that a player's state depends on. `session_key` is 0 unless a session begins; `micros` is null
# unless the event is a purchase. `at` is microseconds since 1970, `taken_seconds` seconds.
PLAYER_EVENTS_SCHEMA = pa.schema(
    [
        pa.field("key", pa.uint64()),
        pa.field("game", pa.string()),
        pa.field("gamer_id", pa.string()),
        pa.field("at", pa.int64()),
        pa.field("partition", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("taken_seconds", pa.int64()),
        pa.field("session_key", pa.int64()),
        pa.field("micros", pa.int64()),
        pa.field("event_high", pa.uint64()),
        pa.field("event_rest", pa.uint64()),
        *(pa.field(name, arrow) for name, arrow in _ATTRIBUTES.items()),
    ]
)


def share_of(keys: Words, shares: int) -> Ints:
    """Return the share (int64, from 0) of each player, one for each of `keys` (uint64), in order."""
    return np.asarray((keys % np.uint64(BUCKETS)).astype(np.int64) % shares)


def in_order(player_events: pa.Table) -> pa.Table:
    """Sort events (columns of `PLAYER_EVENTS_SCHEMA`) by player, then time, then Kafka partition and offset."""
    names = ("offset", "partition", "at", "key")
    return player_events.take(pa.array(np.lexsort([player_events[name].to_numpy() for name in names]))).combine_chunks()


@dataclass(frozen=True, slots=True)
class PlayerChanges:
    """The changes of a batch to players' states.

    Attributes:
        player_events: columns of `PLAYER_EVENTS_SCHEMA`, sorted by `in_order`.
        counts: bool, one for each event: True for a purchase that counts.
        left_keys: uint64, the players of purchases that have left the last hour since the last batch.
        left_micros: int64, the prices of these purchases in millionths of a US dollar, parallel to `left_keys`.
        moment: the stream's time in microseconds since 1970.
    """

    player_events: pa.Table
    counts: Flags
    left_keys: Words
    left_micros: Ints
    moment: int

    def keys(self) -> Words:
        """Return the keys (uint64) of the players whose state changes, ascending, each once."""
        return np.unique(np.concatenate([self.player_events["key"].to_numpy(), self.left_keys]))


def blank(keys: Words) -> pa.Table:
    """Build initial states: columns of `STATE_SCHEMA`, one row for each of `keys` (uint64), in order."""
    columns: dict[str, pa.Array] = {}
    for field in STATE_SCHEMA:
        empty = pa.types.is_string(field.type) or field.name == "level"
        columns[field.name] = pa.nulls(len(keys), field.type) if empty else pa.array(np.zeros(len(keys)), field.type)
    columns["key"] = pa.array(keys)
    columns["erased"] = pa.array(np.zeros(len(keys), np.bool_))
    return pa.table(columns, schema=STATE_SCHEMA)


def advanced(old: pa.Table, changes: PlayerChanges) -> pa.Table:
    """Apply the changes of a batch to the states of its players.

    Args:
        old: columns of `STATE_SCHEMA`, one row for each of `changes.keys()`, in order.
        changes: the changes.

    Returns:
        The new states: columns of `STATE_SCHEMA`, in the same order.
    """
    rows = changes.player_events
    keys = old["key"].to_numpy()
    places = np.searchsorted(keys, rows["key"].to_numpy())
    at = rows["at"].to_numpy()
    step = _Step(old, places, at)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {"key": old["key"], "erased": old["erased"]}
    seen = step.newest(np.ones(len(places), np.bool_))
    for name in ("game", "gamer_id"):
        columns[name] = (
            pc.if_else(pa.array(seen >= 0), rows[name].take(pa.array(np.maximum(seen, 0))), old[name])
            if len(rows)
            else old[name]
        )
    for name in _ATTRIBUTES:
        columns[name], columns[f"{name}_at"] = step.latest(rows, name)
    columns["session_key"], begun = step.sessions(rows["session_key"].to_numpy())
    columns["sessions"] = step.added("sessions", begun)
    columns |= _purchases(step, changes, keys)
    first = old["first_seen"].to_numpy()
    first = np.where(first > 0, first, np.iinfo(np.int64).max)
    np.minimum.at(first, places, at)
    columns["first_seen"] = pa.array(first)
    columns["last_seen"] = step.greatest("last_seen", places, at)
    columns["as_of"] = pa.array(np.full(len(keys), changes.moment))
    return pa.table({field.name: columns[field.name] for field in STATE_SCHEMA}, schema=STATE_SCHEMA)


def _purchases(step: "_Step", changes: PlayerChanges, keys: Words) -> dict[str, pa.Array]:
    bought = np.flatnonzero(changes.counts)
    places, at = step.places[bought], step.at[bought]
    micros = pc.fill_null(changes.player_events["micros"], 0).to_numpy()[bought]
    recent = at > changes.moment - HOUR
    left = np.searchsorted(keys, changes.left_keys)
    ones = np.ones(len(bought), np.int64)
    in_hour = _sum(len(keys), places[recent], ones[recent]) - _sum(len(keys), left, np.ones(len(left), np.int64))
    spent = _sum(len(keys), places[recent], micros[recent]) - _sum(len(keys), left, changes.left_micros)
    return {
        "purchases": step.added("purchases", _sum(len(keys), places, ones)),
        "bookings_micros": step.added("bookings_micros", _sum(len(keys), places, micros)),
        "purchases_last_hour": step.added("purchases_last_hour", in_hour),
        "spend_last_hour_micros": step.added("spend_last_hour_micros", spent),
        "last_purchase": step.greatest("last_purchase", places, at),
    }


def _sum(length: int, places: Ints, values: Ints) -> Ints:
    sums = np.zeros(length, np.int64)
    np.add.at(sums, places, values)
    return sums


@dataclass(frozen=True, slots=True)
class _Step:
    """The old states, and the events to apply.

    Attributes:
        old: columns of `STATE_SCHEMA`, one row per player.
        places: int64, for each event the row of its player in `old`, ascending.
        at: int64, the time of each event in microseconds since 1970.
    """

    old: pa.Table
    places: Ints
    at: Ints

    def newest(self, rows: Flags) -> Ints:
        """Return for each player the number of the last event for which `rows` is True; -1 if there is none."""
        found = np.full(len(self.old), -1)
        chosen = np.flatnonzero(rows)
        # Numpy keeps the last of several values for one place, and the rows are in order.
        found[self.places[chosen]] = chosen
        return found

    def latest(self, rows: pa.Table, name: str) -> tuple[pa.Array | pa.ChunkedArray, pa.Array]:
        """Return the newest value of an attribute for each player, and its event time in microseconds."""
        before = self.old[f"{name}_at"].to_numpy()
        if not len(rows):
            return self.old[name], pa.array(before)
        newest = self.newest(np.asarray(rows[name].is_valid().to_numpy()))
        after = np.where(newest >= 0, self.at[np.maximum(newest, 0)], -1)
        taken = after >= np.maximum(before, 0)
        values = pc.if_else(pa.array(taken), rows[name].take(pa.array(np.maximum(newest, 0))), self.old[name])
        return values, pa.array(np.where(taken, after, before))

    def sessions(self, session_keys: Ints) -> tuple[pa.Array, Ints]:
        """Return each player's last session, and the number of new sessions; one that is reported twice counts once."""
        last = self.old["session_key"].to_numpy().copy()
        starts = np.flatnonzero(session_keys != 0)
        places, sessions = self.places[starts], session_keys[starts]
        before = last[places]
        same = np.flatnonzero(places[1:] == places[:-1]) + 1
        before[same] = sessions[same - 1]
        begun = _sum(len(last), places, (sessions != before).astype(np.int64))
        last[places] = sessions
        return pa.array(last), begun

    def added(self, name: str, more: Ints) -> pa.Array:
        """Return a count plus its increase, for each player."""
        return pa.array(self.old[name].to_numpy() + more)

    def greatest(self, name: str, places: Ints, values: Ints) -> pa.Array:
        """Return the later of a player's time and the events' times, for each player."""
        result = self.old[name].to_numpy().copy()
        np.maximum.at(result, places, values)
        return pa.array(result)
