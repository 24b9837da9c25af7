"""Keeps all gold tables up to date, round after round, wherever their refreshes are run."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from threading import Event
from typing import Protocol

from gamelake.gold.refresh import GoldRefresh, Refreshed
from gamelake.gold.rounds import Failed, GoldTables, Schedule, summary

log = logging.getLogger(__name__)

# New games are looked for so often.
_LONGEST_PAUSE = timedelta(seconds=15)

Result = Refreshed | Failed
# Attempts every refresh, in any order; what is given is in the order of what was asked, some at a time.
RunAll = Callable[[Sequence[GoldRefresh]], Iterable[Result]]


class Observer(Protocol):
    """Is told of rounds; none of its methods raises."""

    def looked_at(self, refresh: GoldRefresh, result: Result) -> None:
        """A round has come to a table."""

    def round_done(self, seconds: float) -> None:
        """All tables that were due have been looked at."""

    def is_well(self) -> None:
        """The job moves, whether anything was due or not."""


class Several:
    """Passes on what it is told."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def looked_at(self, refresh: GoldRefresh, result: Result) -> None:
        """Tell everyone."""
        for each in self._observers:
            each.looked_at(refresh, result)

    def round_done(self, seconds: float) -> None:
        """Tell everyone."""
        for each in self._observers:
            each.round_done(seconds)

    def is_well(self) -> None:
        """Tell everyone."""
        for each in self._observers:
            each.is_well()


class Keeper:
    """Looks after the gold tables of one lakehouse."""

    def __init__(self, tables: GoldTables, run_all: RunAll, observer: Observer) -> None:
        self._tables = tables
        self._run_all = run_all
        self._observer = observer

    def once(self) -> Sequence[Result]:
        """Refresh every table now."""
        return self._round(self._tables.now())

    def until(self, stop: Event) -> None:
        """Refresh each table at its own interval until asked to stop, which is heard between rounds."""
        schedule = Schedule()
        while not stop.is_set():
            tables = self._tables.now()
            due = schedule.due(tables, time.monotonic())
            if due:
                self._round(due)
            self._observer.is_well()
            stop.wait(schedule.pause(tables, time.monotonic(), _LONGEST_PAUSE))

    def _round(self, due: Sequence[GoldRefresh]) -> Sequence[Result]:
        started = time.monotonic()
        results = []
        for refresh, result in zip(due, self._run_all(due), strict=True):
            results.append(result)
            if isinstance(result, Failed):
                log.error("%s is not up to date: %s", result.table, result.reason)
            elif refresh.held:
                log.warning("%s is held back %s", refresh.table, refresh.held)
            self._observer.looked_at(refresh, result)
            # A round of many tables that have much to catch up with takes minutes.
            self._observer.is_well()
        seconds = time.monotonic() - started
        self._observer.round_done(seconds)
        log.info("%s", summary(results, seconds))
        return results
