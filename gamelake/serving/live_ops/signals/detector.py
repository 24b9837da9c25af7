"""Judges each minute of event time: which signals begin, and which end."""

from collections.abc import Iterator, Sequence

import msgspec

from gamelake.serving.live_ops.signals.counts import Count, Hour
from gamelake.serving.live_ops.signals.drops import Drops
from gamelake.serving.live_ops.signals.signals import Sensitivity, Signal, SignalKind
from gamelake.serving.live_ops.signals.surges import Surges

# A silent game also has fewer purchases: one incident is one signal.
_GRAVER = {
    SignalKind.EVENTS_FALL: (SignalKind.SILENT,),
    SignalKind.BOOKINGS_FALL: (SignalKind.SILENT, SignalKind.EVENTS_FALL),
}
_USUAL_SENSITIVITY = Sensitivity()


class Detector:
    """Judges minutes, and remembers the signals that last.

    Call `recall_hours` once, then `recall` for the minutes that were judged before, then `judge` for each new minute.
    Minutes must be in ascending order; minutes without events may be left out. One thread uses it at a time.

    Args:
        sensitivity: the bounds of usual behaviour.
    """

    def __init__(self, sensitivity: Sensitivity = _USUAL_SENSITIVITY) -> None:
        self._sensitivity = sensitivity
        self._falls = Drops(sensitivity)
        self._rises = Surges(sensitivity)
        self._lasting: dict[tuple[SignalKind, str, str], Signal] = {}

    @property
    def lasting(self) -> Sequence[Signal]:
        """The signals that have begun and not ended."""
        return list(self._lasting.values())

    @property
    def games(self) -> Sequence[str]:
        """All games seen so far, in the order in which they were first seen."""
        return self._falls.games

    def ratios(self) -> Iterator[tuple[str, str, float]]:
        """Yield the game, the measure, and the ratio of its observed to its expected value in the last minutes."""
        return self._falls.ratios()

    def judge(self, minute: int, counts: Sequence[Count]) -> list[Signal]:
        """Learn a minute, and return the signals that end or begin with it.

        Args:
            minute: minutes since 1970.
            counts: the counts of all games and versions in the minute.
        """
        if not self._learn(minute, counts):
            return []
        ended = [signal for signal in self.lasting if self._is_over(signal, minute)]
        for signal in ended:
            self._end(signal)
        begun = list(self._begin(minute))
        superseded = [signal for signal in self.lasting if self._has_graver(signal)]
        for signal in superseded:
            del self._lasting[signal.subject]
        return [*(msgspec.structs.replace(signal, ended=minute) for signal in (*ended, *superseded)), *begun]

    def recall(self, minute: int, counts: Sequence[Count], changes: Sequence[Signal]) -> None:
        """Learn a minute that was judged before, with the signals that began or ended with it then."""
        self._learn(minute, counts)
        for signal in changes:
            if signal.ended is None:
                self._lasting[signal.subject] = signal
            elif signal.subject in self._lasting:
                self._end(signal)

    def recall_hours(self, hours: Sequence[Hour]) -> None:
        """Learn the hours before the first minute to be recalled."""
        self._falls.recall_hours(hours)

    def _learn(self, minute: int, counts: Sequence[Count]) -> bool:
        unusual = frozenset((signal.kind, signal.game) for signal in self._lasting.values())
        if not self._falls.take(minute, counts, unusual):
            return False
        self._rises.take(minute, counts)
        return True

    def _is_over(self, signal: Signal, minute: int) -> bool:
        if minute - signal.noticed >= self._sensitivity.longest:
            return True
        watcher = self._rises if signal.kind is SignalKind.ERRORS_RISE else self._falls
        return watcher.is_over(signal, minute)

    def _end(self, signal: Signal) -> None:
        del self._lasting[signal.subject]
        if signal.kind is SignalKind.ERRORS_RISE:
            self._rises.forget(signal.game, signal.app_version)
        elif not self._has_graver(signal):
            self._falls.forget(signal.game)

    def _has_graver(self, signal: Signal) -> bool:
        return any((kind, signal.game, "") in self._lasting for kind in _GRAVER.get(signal.kind, ()))

    def _begin(self, minute: int) -> Iterator[Signal]:
        for signal in (*self._falls.begun(minute), *self._rises.begun(minute)):
            if signal.subject not in self._lasting and not self._has_graver(signal):
                self._lasting[signal.subject] = signal
                yield signal
