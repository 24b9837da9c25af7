"""The simulator's own traffic as counts of minutes, without encoding an event; minutes are counted since 1970."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.model.games import load_games
from gamelake.serving.live_ops.counts import Count
from gamelake.serving.live_ops.detector import Detector
from gamelake.serving.live_ops.signals import Signal
from tools.simulator import reference_data
from tools.simulator.columns import Scene
from tools.simulator.defects import Fate
from tools.simulator.event_arrays import Happening
from tools.simulator.incidents import Incident
from tools.simulator.spec import Shares, TrafficSpec
from tools.simulator.traffic import Traffic

# A run ends here, at midnight: its last day is whole.
END = datetime(2026, 1, 2, tzinfo=UTC)
_END_US = int(END.timestamp()) * 1_000_000
_PRICES = np.array(reference_data.PRICE_CENTS) * 10_000


@dataclass
class _Listener:
    """Hears what happens instead of encoding it."""

    version: int
    scenes: list[Scene] = field(default_factory=list)

    def encode(self, scene: Scene) -> pa.BinaryArray:
        self.scenes.append(scene)
        return pa.array([b""] * len(scene.moments), pa.binary())


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
    listeners = [_Listener(version) for version in (1, 2, 3)]
    first = _END_US // 60_000_000 - hours * 60
    sums = np.zeros((hours * 60 + 1, len(games), len(reference_data.RELEASES), 4), np.int64)
    for _ in Traffic(spec, listeners, clock=lambda: _END_US).parcels():
        for listener in listeners:
            for scene in listener.scenes:
                _add(sums, scene, first, len(games))
            listener.scenes.clear()
    names = [game.name for game in games]
    return tuple((first + at, tuple(_counts(first + at, sums[at], names))) for at in range(hours * 60))


def _add(sums: npt.NDArray[np.int64], scene: Scene, first: int, games: int) -> None:
    moments = scene.moments
    at = scene.event_time_us // 60_000_000 - first
    good = (at >= 0) & (moments.fate != Fate.LATE) & (moments.game < games)
    bought = moments.happening == Happening.PURCHASE
    measures = (
        np.ones(len(moments), np.int64),
        moments.happening == Happening.ERROR,
        bought,
        np.where(bought, _PRICES[moments.product] * moments.quantity, 0),
    )
    for place, values in enumerate(measures):
        np.add.at(sums[..., place], (at[good], moments.game[good], moments.release[good]), values[good])


def _counts(minute: int, sums: npt.NDArray[np.int64], names: list[str]) -> Iterator[Count]:
    for game, release in zip(*np.nonzero(sums[..., 0]), strict=True):
        events, errors, purchases, bookings = (int(value) for value in sums[game, release])
        yield Count(minute, names[game], reference_data.RELEASES[release], events, errors, purchases, bookings)


@dataclass(frozen=True)
class Said:
    """A signal and the minute of the run's last day (UTC) in which it was given."""

    at: int
    signal: Signal


def judged(run: tuple[tuple[int, tuple[Count, ...]], ...], detector: Detector | None = None) -> list[Said]:
    """What is said of a run."""
    detector = detector or Detector()
    midnight = _END_US // 60_000_000 - 24 * 60
    return [Said(minute - midnight, signal) for minute, counts in run for signal in detector.judge(minute, counts)]


def clock(hours: int, minutes_past: int = 0) -> int:
    """A time of day as a minute of the last day."""
    return hours * 60 + minutes_past
