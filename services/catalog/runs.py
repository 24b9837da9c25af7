"""One round after the other: find tables, register what is new, measure."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from threading import Event

from obstore.exceptions import BaseError

from gamelake.model.errors import TransientError
from services.catalog.errors import StoreSilentError, TableError
from services.catalog.metrics import CatalogMetrics, RoundOutcome
from services.catalog.registration import Registrar
from services.catalog.table_statistics import Measuring
from services.catalog.tables import Table, TableFinder
from services.catalog.views import ViewKeeper

LONGEST_WAIT = timedelta(seconds=30)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to wait after a round, and how often one of them measures."""

    interval: timedelta
    measure_interval: timedelta


@dataclass(frozen=True, slots=True)
class Steps:
    """What a round consists of."""

    finder: TableFinder
    registrar: Registrar
    measuring: Measuring
    views: ViewKeeper | None = None


class Rounds:
    """The service's work, once or until it is told to stop."""

    def __init__(
        self, steps: Steps, metrics: CatalogMetrics, pace: Pace, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._steps = steps
        self._metrics = metrics
        self._pace = pace
        self._clock = clock
        self._measured_at = float("-inf")

    def run(self, stop: Event) -> None:
        """Do rounds until stopped; while something gives no answer, wait twice as long after each."""
        silent_rounds = 0
        while not stop.is_set():
            try:
                self.once()
                silent_rounds = 0
            except TransientError as error:
                silent_rounds += 1
                log.warning("%s", error)
            stop.wait(self._wait(silent_rounds).total_seconds())

    def once(self) -> list[TableError]:
        """One round; gives what was wrong with single tables, which fails it too.

        Raises:
            TransientError: the object store or Trino gave no answer.
        """
        try:
            errors = self._round()
        except TransientError:
            self._metrics.round_ended(RoundOutcome.FAILED)
            raise
        self._metrics.round_ended(RoundOutcome.FAILED if errors else RoundOutcome.OK)
        return errors

    def _round(self) -> list[TableError]:
        try:
            found = self._steps.finder.find()
            try:
                known, refused = self._steps.registrar.bring_in_line(found)
                self._metrics.registered(known)
                if self._steps.views is not None:
                    refused += self._steps.views.bring_in_line(found)
            finally:
                # The figures come from the logs alone: a Trino that is away does not stop them.
                unreadable = self._measure_if_due(found)
        except (BaseError, OSError) as error:
            raise StoreSilentError(f"the object store does not answer: {error}") from error
        return refused + unreadable

    def _measure_if_due(self, found: frozenset[Table]) -> list[TableError]:
        if self._clock() - self._measured_at < self._pace.measure_interval.total_seconds():
            return []
        self._measured_at = self._clock()
        try:
            return self._steps.measuring.measure(found)
        finally:
            self._metrics.tables(self._steps.measuring.figures.items())

    def _wait(self, silent_rounds: int) -> timedelta:
        # A power that can't overflow, whatever the outage's length.
        return min(self._pace.interval * 2.0 ** min(silent_rounds, 10), max(LONGEST_WAIT, self._pace.interval))
