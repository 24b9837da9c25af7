"""Finds games with less activity than expected: no events at all, fewer events, fewer purchases or less money."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gamelake.model.arrays import Flags, Floats
from gamelake.serving.live_ops.signals.baselines import Baselines, median_of_rows
from gamelake.serving.live_ops.signals.counts import Count, Hour
from gamelake.serving.live_ops.signals.signals import Sensitivity, Signal, SignalKind, fewer_by_chance

_SILENT_MINUTES, _HEARD_MINUTES, _RATIO_MINUTES = 3, 2, 5
_MICROS = 1_000_000
_MEASURES: Mapping[str, tuple[SignalKind, float]] = {
    "events": (SignalKind.EVENTS_FALL, 4.0),
    "purchases": (SignalKind.BOOKINGS_FALL, 1.5),
    "bookings": (SignalKind.BOOKINGS_FALL, 30.0),
}


@dataclass(frozen=True, slots=True)
class _Window:
    """The observed and expected sums of one measure, for all games.

    Attributes:
        windows: the lengths of the windows in minutes.
        observed: float64 of shape (games, windows), the sums over the last minutes.
        expected: float64 of the same shape; NaN if there is too little data about a game.
    """

    windows: tuple[int, ...]
    observed: Floats
    expected: Floats


class Drops:
    """Watches the sums of all games minute by minute; see `Detector` for the order of calls."""

    def __init__(self, sensitivity: Sensitivity) -> None:
        self._sensitivity = sensitivity
        self._games: dict[str, int] = {}
        self._known_minutes = np.zeros(0, np.int64)
        self._levels = {name: Baselines(spread) for name, (_, spread) in _MEASURES.items()}
        # The expected values of the last minutes, each computed before its minute was learnt.
        self._due = {name: np.zeros((0, max(sensitivity.windows))) for name in _MEASURES}
        self._last: int | None = None

    @property
    def games(self) -> Sequence[str]:
        """All games seen so far, in the order in which they were first seen."""
        return list(self._games)

    def take(self, minute: int, counts: Sequence[Count], unusual: frozenset[tuple[SignalKind, str]]) -> bool:
        """Learn a minute.

        Args:
            minute: minutes since 1970.
            counts: the counts of all games and versions in the minute.
            unusual: the kind and the game of each signal that lasts.

        Returns:
            False if no game has an event in the minute: then the platform is down, and nothing can be judged.
        """
        self._meet(counts)
        if self._last is not None and minute > self._last + 1:
            self._skip(minute - self._last - 1)
        self._last = minute
        if not counts:
            self._skip(1)
            return False
        sums = self._sums(counts)
        self._known_minutes += 1
        for name, (kind, _) in _MEASURES.items():
            levels, usual = self._levels[name], np.ones(len(self._games), bool)
            for said, game in unusual:
                if said in (SignalKind.SILENT, SignalKind.EVENTS_FALL, kind):
                    # A recalled signal may be about a game without events since the start.
                    usual[self._games.get(game, [])] = False
            self._due[name] = np.hstack([self._due[name][:, 1:], levels.expected(minute)[:, None]])
            levels.take(minute, sums[name], usual)
        return True

    def recall_hours(self, hours: Sequence[Hour]) -> None:
        """Learn the sums of former hours, before the first minute."""
        self._meet(hours)
        for each in hours:
            means = (each.events / 60, each.purchases / 60, max(each.bookings_micros, 0) / _MICROS / 60)
            for levels, mean in zip(self._levels.values(), means, strict=True):
                levels.recall(self._games[each.game], each.hour, mean)

    def _meet(self, counts: Sequence[Count | Hour]) -> None:
        for count in counts:
            self._games.setdefault(count.game, len(self._games))
        more = len(self._games) - len(self._known_minutes)
        if more:
            self._known_minutes = np.concatenate([self._known_minutes, np.zeros(more, np.int64)])
            for name, levels in self._levels.items():
                levels.grow(len(self._games))
                self._due[name] = np.vstack([self._due[name], np.full((more, self._due[name].shape[1]), np.nan)])

    def _skip(self, minutes: int) -> None:
        for name, levels in self._levels.items():
            levels.skip(minutes)
            gone = np.zeros((len(self._games), min(minutes, self._due[name].shape[1])))
            self._due[name] = np.hstack([self._due[name], gone])[:, -self._due[name].shape[1] :]

    def _sums(self, counts: Sequence[Count]) -> dict[str, Floats]:
        sums = {name: np.zeros(len(self._games)) for name in _MEASURES}
        for count in counts:
            row = self._games[count.game]
            sums["events"][row] += count.events
            sums["purchases"][row] += count.purchases
            sums["bookings"][row] += max(count.bookings_micros, 0) / _MICROS
        return sums

    def begun(self, minute: int) -> Iterator[Signal]:
        """Yield all current drops, the gravest of each game first; they may have begun earlier."""
        yield from self._silent(minute)
        for name, (kind, _) in _MEASURES.items():
            seen = self._window(name, self._sensitivity.windows)
            dropped = self._has_dropped(name, seen)
            for row in np.flatnonzero(dropped.any(axis=1)):
                yield self._signal(kind, minute, seen, int(row), int(np.argmax(dropped[row])))

    def _silent(self, minute: int) -> Iterator[Signal]:
        seen = self._window("events", (_SILENT_MINUTES,))
        for row in np.flatnonzero((self._has_dropped("events", seen) & (seen.observed == 0)).any(axis=1)):
            yield self._signal(SignalKind.SILENT, minute, seen, int(row), 0)

    def _window(self, name: str, windows: tuple[int, ...]) -> _Window:
        columns = [window - 1 for window in windows]
        expected = np.cumsum(self._due[name][:, ::-1], axis=1)[:, columns]
        observed = np.cumsum(self._levels[name].recent[:, ::-1], axis=1)[:, columns]
        too_young = self._known_minutes < self._sensitivity.warm_up
        expected = np.where(too_young[:, None], np.nan, expected)
        return _Window(windows, observed, expected * self._of_all(observed, expected))

    def _of_all(self, observed: Floats, expected: Floats) -> Floats:
        """Return the games' median ratio of observed to expected, at most 1: a fall of all games is not one game's."""
        with np.errstate(all="ignore"):
            parts = np.where(expected > 0, observed / expected, np.nan)
        enough = np.isfinite(parts).sum(axis=0) >= self._sensitivity.common
        return np.where(enough, np.minimum(median_of_rows(parts.T), 1.0), 1.0)

    def _has_dropped(self, name: str, seen: _Window) -> Flags:
        spread = self._levels[name].spread[:, None]
        tolerated = np.nan_to_num(seen.expected) * self._sensitivity.tolerated
        return np.asarray(fewer_by_chance(seen.observed / spread, tolerated / spread) > self._sensitivity.sureness)

    def _signal(self, kind: SignalKind, minute: int, seen: _Window, row: int, column: int) -> Signal:
        return Signal(
            kind=kind,
            game=self.games[row],
            begun=minute - seen.windows[column] + 1,
            noticed=minute,
            observed=round(float(seen.observed[row, column]), 2),
            expected=round(float(seen.expected[row, column]), 2),
        )

    def is_over(self, signal: Signal, minute: int) -> bool:
        """Return True if the drop of a signal has passed."""
        row = self._games.get(signal.game)
        if row is None:
            return False
        if signal.kind is SignalKind.SILENT:
            return bool((self._levels["events"].recent[row, -_HEARD_MINUTES:] > 0).all())
        # The same window as when it was noticed: a shorter one would mistake noise for the end.
        window = min(max(signal.noticed - signal.begun + 1, 5), max(self._sensitivity.windows))
        return all(
            self._has_recovered(name, window, row) for name, (kind, _) in _MEASURES.items() if kind is signal.kind
        )

    def _has_recovered(self, name: str, window: int, row: int) -> bool:
        seen = self._window(name, (window,))
        return bool(seen.observed[row, 0] >= self._sensitivity.recovered * np.nan_to_num(seen.expected[row, 0]))

    def forget(self, game: str) -> None:
        """Clear a game's recent minutes, so that a longer window does not find an incident that is over again."""
        row: int | list[int] = self._games.get(game, [])
        for name, levels in self._levels.items():
            levels.recent[row, :] = 0
            self._due[name][row, :] = 0

    def ratios(self) -> Iterator[tuple[str, str, float]]:
        """Yield the game, the measure, and the ratio of its observed to its expected value in the last minutes."""
        for name in _MEASURES:
            seen = self._window(name, (_RATIO_MINUTES,))
            for game, row in self._games.items():
                if seen.expected[row, 0] > 0:
                    yield game, name, float(seen.observed[row, 0] / seen.expected[row, 0])
