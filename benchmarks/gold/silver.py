"""Silver tables with events of random players, written without a stream."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake

from gamelake.objects.store import Location

_NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
_NAMES = pa.array(["session_start", "level_started", "level_completed", "purchase"])
_SHARES = (0.12, 0.44, 0.41, 0.03)
_PRICES = pa.array([0.99, 1.99, 4.99, 9.99, 49.99])


class GrowingSilverTable:
    """One silver table that grows.

    Args:
        lake: the lakehouse.
        table: path of the table in it.
        players: number of players; each has the same probability in an event.
        seed: seed of the random events.
    """

    def __init__(self, lake: Location, table: str, players: int, seed: int) -> None:
        self._place = lake.child(table)
        self._random = np.random.default_rng(seed)
        # In random order, as pseudonyms are.
        self._players = pa.array([f"{value:032x}" for value in self._random.integers(0, 2**62, players)])
        self._days = 0

    def append(self, rows: int) -> None:
        """Commit one more day with `rows` events."""
        day = _NOON + timedelta(days=self._days)
        self._days += 1
        write_deltalake(self._place, self._events(rows, day), mode="append", partition_by=["event_date"])

    def _events(self, rows: int, day: datetime) -> pa.Table:
        seconds = pa.array(np.sort(self._random.integers(0, 43_200, rows)), pa.int64())
        start = pa.scalar(day, pa.timestamp("us", "UTC"))
        names = _NAMES.take(pa.array(self._random.choice(len(_NAMES), rows, p=_SHARES)))
        prices = _PRICES.take(pa.array(self._random.integers(0, len(_PRICES), rows)))
        return pa.table(
            {
                "event_time": pc.add(start, pc.multiply(seconds, 1_000_000).cast(pa.duration("us"))),
                "event_name": names,
                "gamer_id": self._players.take(pa.array(self._random.integers(0, len(self._players), rows))),
                "amount": pc.if_else(pc.equal(names, "purchase"), prices, pa.scalar(None, pa.float64())),
                "event_date": pa.repeat(pa.scalar(date(day.year, day.month, day.day)), rows),
            }
        )
