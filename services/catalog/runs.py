"""Runs of the service, one after the other: find tables, register new ones, synchronize views, update statistics."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from threading import Event

from obstore.exceptions import BaseError

from gamelake.model.errors import StoreUnavailableError
from gamelake.model.logs import event_logger
from gamelake.observability.metrics.endpoint import Heartbeat
from services.catalog.errors import TableError
from services.catalog.metrics import CatalogMetrics, CatalogRunOutcome
from services.catalog.registration import Registrar
from services.catalog.table_statistics import StatisticsTracker
from services.catalog.tables import CatalogTable, TableFinder
from services.catalog.views import ViewSync

LONGEST_WAIT = timedelta(seconds=30)

log = event_logger(__name__)


@dataclass(frozen=True, slots=True)
class RunIntervals:
    """The wait after a run, and the least time between two measurements."""

    interval: timedelta
    measure_interval: timedelta


@dataclass(frozen=True, slots=True)
class CatalogSteps:
    """The steps of a run."""

    finder: TableFinder
    registrar: Registrar
    statistics: StatisticsTracker
    views: ViewSync | None = None


class CatalogLoop:
    """Does runs, once or until stopped."""

    def __init__(
        self,
        steps: CatalogSteps,
        metrics: CatalogMetrics,
        intervals: RunIntervals,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._steps = steps
        self._metrics = metrics
        self._intervals = intervals
        self._clock = clock
        self._measured_at = float("-inf")

    def run(self, stop: Event, heartbeat: Heartbeat) -> None:
        """Do runs until stopped, whatever a run raises, with a beat after each.

        The wait doubles after each run that fails.
        """
        failed_runs = 0
        while not stop.is_set():
            try:
                self.once()
                failed_runs = 0
            except Exception as error:
                # The next run may succeed; CatalogBehind fires if none does.
                failed_runs += 1
                pause = self._wait(failed_runs).total_seconds()
                log.warning(
                    "catalog_run_failed",
                    error=f"{type(error).__name__}: {error}",
                    seconds=pause,
                    action="tries again after these seconds",
                )
            heartbeat.beat()
            stop.wait(self._wait(failed_runs).total_seconds())

    def once(self) -> list[TableError]:
        """Do one run; returns errors of single tables, without which the run is incomplete.

        Raises:
            TransientError: the object store or Trino is not available.
        """
        try:
            errors = self._run()
        except Exception:
            self._metrics.run_ended(CatalogRunOutcome.FAILED)
            raise
        self._metrics.run_ended(CatalogRunOutcome.INCOMPLETE if errors else CatalogRunOutcome.OK)
        return errors

    def _run(self) -> list[TableError]:
        try:
            found = self._steps.finder.find()
            try:
                known, refused = self._steps.registrar.synchronize(found)
                self._metrics.registered(known)
                if self._steps.views is not None:
                    refused += self._steps.views.synchronize(found)
            finally:
                # Statistics come from the logs alone: they are updated without Trino, too.
                unreadable = self._measure_if_due(found)
        except (BaseError, OSError) as error:
            raise StoreUnavailableError(f"the object store is not available: {error}") from error
        return refused + unreadable

    def _measure_if_due(self, found: frozenset[CatalogTable]) -> list[TableError]:
        if self._clock() - self._measured_at < self._intervals.measure_interval.total_seconds():
            return []
        self._measured_at = self._clock()
        try:
            return self._steps.statistics.measure(found)
        finally:
            self._metrics.tables(self._steps.statistics.figures.items())

    def _wait(self, failed_runs: int) -> timedelta:
        # The exponent is limited, so that the power can't overflow.
        return min(self._intervals.interval * 2.0 ** min(failed_runs, 10), max(LONGEST_WAIT, self._intervals.interval))
