"""The purchases of the last hour: when each leaves the hour, and which new ones are duplicates of them."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from gamelake.layers.known_events import Events, KnownEvents, repeated
from gamelake.model.arrays import Flags, Ints, Words
from gamelake.serving.live_ops.states.players import HOUR

# Times are microseconds since 1970. `leaves` is when a purchase is an hour old, 0 if it arrived too late to be in the
# hour. `kept_until` is the stream's time at which it is forgotten. `high` and `low` are the event's identity and Kafka
# timestamp; see `Events`.
PURCHASES_SCHEMA = pa.schema(
    [
        pa.field("key", pa.uint64()),
        pa.field("micros", pa.int64()),
        pa.field("leaves", pa.int64()),
        pa.field("kept_until", pa.int64()),
        pa.field("high", pa.uint64()),
        pa.field("low", pa.uint64()),
    ]
)
_WINDOW_SECONDS = 3_600


@dataclass(slots=True)
class LastHour:
    """The purchases that are still needed, in the order of arrival. One thread uses it at a time."""

    _rows: pa.Table = field(default_factory=PURCHASES_SCHEMA.empty_table)
    _known: KnownEvents = field(default_factory=lambda: KnownEvents(_WINDOW_SECONDS))

    def add(self, purchases: pa.Table) -> None:
        """Add new purchases: columns of `PURCHASES_SCHEMA`, one row for each purchase."""
        if not len(purchases):
            return
        self._rows = pa.concat_tables([self._rows, purchases]).combine_chunks()
        events = Events(purchases["high"].to_numpy(), purchases["low"].to_numpy())
        self._known.add(events, int(events.seconds.max()) - _WINDOW_SECONDS)

    def new(self, events: Events) -> Flags:
        """Find new purchases.

        Args:
            events: the identities of purchases.

        Returns:
            bool, one for each of `events`, in order: False for an event that is known or appears earlier in `events`.
        """
        new = ~self._known.have(events)
        among = np.flatnonzero(new)
        new[among[repeated(events.take(among), _WINDOW_SECONDS)]] = False
        return np.asarray(new)

    def leaving(self, before: int, moment: int) -> tuple[Words, Ints]:
        """Find the purchases that leave the last hour between two times.

        Args:
            before: microseconds since 1970, exclusive.
            moment: microseconds since 1970, inclusive.

        Returns:
            Two arrays, one element for each purchase: player keys (uint64) and millionths of a US dollar (int64).
        """
        leaves = self._rows["leaves"].to_numpy()
        gone = (leaves > before) & (leaves <= moment)
        return self._rows["key"].to_numpy()[gone], self._rows["micros"].to_numpy()[gone]

    def forget(self, moment: int) -> None:
        """Delete the purchases that are not needed after a time (microseconds since 1970)."""
        kept = self._rows["kept_until"].to_numpy() > moment
        if kept.sum() < len(kept) * 0.9:
            self._rows = self._rows.filter(pa.array(kept)).combine_chunks()


def purchases(player_events: pa.Table, counts: Flags, moment: int) -> pa.Table:
    """Select the purchases to keep for the last hour.

    Args:
        player_events: columns of `PLAYER_EVENTS_SCHEMA`.
        counts: bool, one for each event: True for a purchase that counts.
        moment: the stream's time in microseconds since 1970.

    Returns:
        Columns of `PURCHASES_SCHEMA`, one row for each event that counts, in order; times in microseconds since 1970.
    """
    bought = player_events.filter(pa.array(counts))
    at = bought["at"].to_numpy()
    events = events_of(bought)
    columns = {
        "key": bought["key"],
        "micros": bought["micros"],
        "leaves": pa.array(np.where(at > moment - HOUR, at + HOUR, 0)),
        "kept_until": pa.array(np.full(len(at), moment + HOUR)),
        "high": pa.array(events.high),
        "low": pa.array(events.low),
    }
    return pa.table(columns, schema=PURCHASES_SCHEMA)


def events_of(player_events: pa.Table) -> Events:
    """Build the identities of events (columns of `PLAYER_EVENTS_SCHEMA`), in the same order."""
    return Events.of(
        player_events["event_high"].to_numpy(),
        player_events["event_rest"].to_numpy(),
        player_events["taken_seconds"].to_numpy(),
    )
