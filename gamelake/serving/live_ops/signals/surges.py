"""Finds new versions of a game that have more errors than its other versions."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gamelake.serving.live_ops.signals.counts import Count
from gamelake.serving.live_ops.signals.signals import Sensitivity, Signal, SignalKind, more_by_chance

_MINUTES = 60
_WINDOWS = (3, 5, 10, 20, 40, 60)
# Errors arrive in bursts: a device that fails once fails again.
_SPREAD = 1.5
# With fewer events than this, the other versions' error rate is not reliable.
_ENOUGH_EVENTS = 200
_GONE_MINUTES = 15


@dataclass(slots=True)
class _Version:
    """One version of a game.

    Attributes:
        appeared: the minute (since 1970) in which it was first seen.
        events: the number of events in the last hour.
        errors: the number of errors in the last hour.
    """

    appeared: int
    events: int = 0
    errors: int = 0
    _minutes: deque[tuple[int, int]] = field(default_factory=deque)

    def take(self, events: int, errors: int) -> None:
        """Add a minute, and drop the oldest one after an hour."""
        self._minutes.append((events, errors))
        self.events += events
        self.errors += errors
        if len(self._minutes) > _MINUTES:
            gone_events, gone_errors = self._minutes.popleft()
            self.events -= gone_events
            self.errors -= gone_errors

    def last(self, window: int) -> tuple[int, int]:
        """Return the numbers of events and errors of the last `window` minutes."""
        newest = list(self._minutes)[-window:]
        return sum(events for events, _ in newest), sum(errors for _, errors in newest)

    def forget(self) -> None:
        """Clear the last hour."""
        self._minutes.clear()
        self.events = self.errors = 0

    @property
    def is_gone(self) -> bool:
        """True if the version had no events in the last hour."""
        return len(self._minutes) == _MINUTES and not self.events


@dataclass(slots=True)
class _Game:
    """One game.

    Attributes:
        first: the minute (since 1970) in which it was first seen.
        versions: its versions, by name.
        usual: the error rate of all versions that are not new; None until there are enough events.
    """

    first: int
    versions: dict[str, _Version] = field(default_factory=dict)
    usual: float | None = None


class Surges:
    """Watches the versions of games minute by minute; see `Detector` for the order of calls."""

    def __init__(self, sensitivity: Sensitivity) -> None:
        self._sensitivity = sensitivity
        self._games: dict[str, _Game] = {}

    def take(self, minute: int, counts: Sequence[Count]) -> None:
        """Learn a minute (since 1970) from the counts of all games and versions."""
        seen = {(count.game, count.app_version): count for count in counts}
        for count in counts:
            game = self._games.setdefault(count.game, _Game(minute))
            game.versions.setdefault(count.app_version, _Version(minute))
        for name, game in self._games.items():
            for label, version in list(game.versions.items()):
                now = seen.get((name, label))
                version.take(*((now.events, now.errors) if now else (0, 0)))
                if version.is_gone and minute - version.appeared > self._sensitivity.new_version:
                    del game.versions[label]
            self._learn(game, minute)

    def _learn(self, game: _Game, minute: int) -> None:
        others = [each for each in game.versions.values() if not self._is_new(game, each, minute)]
        events, errors = sum(each.events for each in others), sum(each.errors for each in others)
        if events >= _ENOUGH_EVENTS:
            # One error more than observed, so that a game without any error has a rate above 0.
            game.usual = (errors + 1) / events

    def _is_new(self, game: _Game, version: _Version, minute: int) -> bool:
        # A version that existed when the game was first seen is not new.
        came_later = version.appeared >= game.first + self._sensitivity.warm_up
        return came_later and minute - version.appeared < self._sensitivity.new_version

    def begun(self, minute: int) -> Iterator[Signal]:
        """Yield all current surges; they may have begun earlier."""
        for name, game in self._games.items():
            if game.usual is None:
                continue
            for label, version in game.versions.items():
                if self._is_new(game, version, minute):
                    yield from self._of(name, label, version, game.usual, minute)

    def _of(self, game: str, label: str, version: _Version, usual: float, minute: int) -> Iterator[Signal]:
        for window in _WINDOWS:
            events, errors = version.last(window)
            expected = usual * events
            tolerated = self._sensitivity.error_factor * expected
            if more_by_chance(errors / _SPREAD, tolerated / _SPREAD) > self._sensitivity.sureness:
                yield Signal(
                    kind=SignalKind.ERRORS_RISE,
                    game=game,
                    app_version=label,
                    begun=max(minute - window + 1, version.appeared),
                    noticed=minute,
                    observed=float(errors),
                    expected=round(expected, 2),
                )
                return

    def forget(self, game: str, app_version: str) -> None:
        """Clear a version's last hour, so that a longer window does not find a surge that is over again."""
        known = self._games.get(game)
        if known and app_version in known.versions:
            known.versions[app_version].forget()

    def is_over(self, signal: Signal, minute: int) -> bool:
        """Return True if a version's error rate is close to that of the others again, or the version has no events."""
        game = self._games.get(signal.game)
        version = game.versions.get(signal.app_version) if game else None
        if game is None or version is None or game.usual is None:
            return True
        if not version.last(_GONE_MINUTES)[0]:
            return True
        events, errors = version.last(max(signal.noticed - signal.begun + 1, 5))
        return events > 0 and errors <= self._sensitivity.error_recovered * game.usual * events
