"""The simulator's own traffic as counts of minutes, without encoding an event; minutes are counted since 1970."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from gamelake.contract.games import load_games
from gamelake.model.arrays import Ints
from gamelake.serving.live_ops.signals.counts import Count
from gamelake.serving.live_ops.signals.detector import Detector
from gamelake.serving.live_ops.signals.signals import Signal
from tools.simulator import reference_data
from tools.simulator.columns import EventContext
from tools.simulator.defects import Defect
from tools.simulator.event_arrays import EventKind
from tools.simulator.incidents import Incident
from tools.simulator.spec import Shares, TrafficSpec
from tools.simulator.traffic import TrafficGenerator

# A run ends here, at midnight: its last day is complete.
END = datetime(2026, 1, 2, tzinfo=UTC)
_END_US = int(END.timestamp()) * 1_000_000
_PRICES = np.array(reference_data.PRICE_CENTS) * 10_000


@dataclass
class _Listener:
    """Hears what happens instead of encoding it."""

    version: int
    contexts: list[EventContext] = field(default_factory=list)

    def encode(self, context: EventContext) -> pa.BinaryArray:
        self.contexts.append(context)
        return pa.array([b""] * len(context.events), pa.binary())


@cache
def minutes(
    seed: int, events: int, hours: int = 26, incidents: tuple[str, ...] = ()
) -> tuple[tuple[int, tuple[Count, ...]], ...]:
    """Play, and count what happened in each minute; events that come hours late are not waited for."""
    games = load_games(Path("contracts/games.yaml")).games
    spec = TrafficSpec(
        game_names=tuple(game.game_name for game in games),
        events=events,
        seed=seed,
        history=timedelta(hours=hours),
        incidents=tuple(Incident.parse(each) for each in incidents),
        shares=Shares(future=0),
    )
    listeners = [_Listener(version) for version in range(1, spec.versions + 1)]
    first = _END_US // 60_000_000 - hours * 60
    sums = np.zeros((hours * 60 + 1, len(games), len(reference_data.RELEASES), 4), np.int64)
    for _ in TrafficGenerator(spec, listeners, clock=lambda: _END_US).batches():
        for listener in listeners:
            for context in listener.contexts:
                _add(sums, context, first, len(games))
            listener.contexts.clear()
    names = [game.name for game in games]
    return tuple((first + at, tuple(_counts(first + at, sums[at], names))) for at in range(hours * 60))


def _add(sums: Ints, context: EventContext, first: int, games: int) -> None:
    events = context.events
    at = context.event_time_us // 60_000_000 - first
    good = (at >= 0) & (events.defect != Defect.LATE) & (events.game < games)
    bought = events.kind == EventKind.PURCHASE
    measures = (
        np.ones(len(events), np.int64),
        events.kind == EventKind.ERROR,
        bought,
        np.where(bought, _PRICES[events.product] * events.quantity, 0),
    )
    for place, values in enumerate(measures):
        np.add.at(sums[..., place], (at[good], events.game[good], events.release[good]), values[good])


def _counts(minute: int, sums: Ints, names: list[str]) -> Iterator[Count]:
    for game, release in zip(*np.nonzero(sums[..., 0]), strict=True):
        events, errors, purchases, bookings = (int(value) for value in sums[game, release])
        yield Count(minute, names[game], reference_data.RELEASES[release], events, errors, purchases, bookings)


@dataclass(frozen=True)
class Said:
    """A signal and the minute of the run's last day (UTC) in which it was given."""

    at: int
    signal: Signal


def judged(run: tuple[tuple[int, tuple[Count, ...]], ...], detector: Detector | None = None) -> list[Said]:
    detector = detector or Detector()
    midnight = _END_US // 60_000_000 - 24 * 60
    return [Said(minute - midnight, signal) for minute, counts in run for signal in detector.judge(minute, counts)]


def clock(hours: int, minutes_past: int = 0) -> int:
    """A time of day as a minute of the last day."""
    return hours * 60 + minutes_past
