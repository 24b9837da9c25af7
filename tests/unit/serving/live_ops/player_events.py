"""What players did, and the states that follow, without Spark or Kafka."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from gamelake.serving.live_ops.states.hour import LastHour, events_of, purchases
from gamelake.serving.live_ops.states.memory import PlayerRuns
from gamelake.serving.live_ops.states.players import HOUR, PLAYER_EVENTS_SCHEMA, PlayerChanges, advanced, in_order

MINUTE = HOUR // 60


@dataclass(frozen=True, kw_only=True)
class PlayerEvent:
    """One event of a player; `event` distinguishes purchases, `session` is 0 unless one begins."""

    key: int = 1
    at: int = 100 * MINUTE
    offset: int = 0
    session: int = 0
    micros: int | None = None
    event: int = 0
    level: int | None = None
    platform: str | None = None
    app_version: str | None = None
    country: str | None = None


def numbered(*player_events: PlayerEvent) -> list[PlayerEvent]:
    """In the order in which Kafka has them."""
    return [replace(each, offset=offset) for offset, each in enumerate(player_events)]


def as_table(player_events: Sequence[PlayerEvent]) -> pa.Table:
    rows = [
        {
            "key": each.key,
            "game": "kart",
            "gamer_id": f"g{each.key}",
            "at": each.at,
            "partition": 0,
            "offset": each.offset,
            "taken_seconds": each.at // 1_000_000,
            "session_key": each.session,
            "micros": each.micros,
            "event_high": each.event,
            "event_rest": 0,
            "level": each.level,
            "platform": each.platform,
            "app_version": each.app_version,
            "country": each.country,
        }
        for each in player_events
    ]
    return pa.Table.from_pylist(rows, schema=PLAYER_EVENTS_SCHEMA)


class Players:
    """States as a task has them, batch by batch."""

    def __init__(self) -> None:
        self._runs = PlayerRuns()
        self._hour = LastHour()
        self._moment = 0

    def take(self, *player_events: PlayerEvent, moment: int = 0) -> pa.Table:
        """Take a batch. Return the states that changed."""
        now = (
            max(self._moment, moment, *(each.at for each in player_events))
            if player_events
            else max(self._moment, moment)
        )
        rows = in_order(as_table(player_events))
        bought = np.flatnonzero(rows["micros"].is_valid().to_numpy())
        counts = np.zeros(len(rows), np.bool_)
        counts[bought] = self._hour.new(events_of(rows.take(pa.array(bought))))
        changes = PlayerChanges(rows, counts, *self._hour.leaving(self._moment, now), now)
        self._hour.add(purchases(rows, counts, now))
        changed = advanced(self._runs.find(changes.keys()), changes)
        self._runs.add(changed)
        self._moment = now
        return changed

    def state(self, key: int = 1) -> dict[str, object]:
        (row,) = self._runs.find(np.array([key], np.uint64)).to_pylist()
        return dict(row)

    def states(self) -> list[dict[str, object]]:
        """Return the state of all players, except when it was last read."""
        return [{name: value for name, value in row.items() if name != "as_of"} for row in self._runs.all().to_pylist()]
