"""Keeps the tables of experiments up to date after runs of gold; no fault here stops a table of gold."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from gamelake.contract.experiments import EXPERIMENTS_FILE, ExperimentSpec
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store
from gamelake.serving.experiments.refresh import ExperimentRefresh, ExperimentsRefreshed, load_contracts
from gamelake.serving.experiments.tables import STATISTICS
from gamelake.serving.gold.runner import FailedRefresh

log = event_logger(__name__)

_INTERVAL = timedelta(minutes=1)
# For each second of a refresh, so that gold's job spends at most a tenth of its time on experiments.
_PAUSE = 9.0


class ExperimentObserver(Protocol):
    """Is notified of refreshes."""

    def refreshed(self, done: ExperimentsRefreshed, experiments: Sequence[ExperimentSpec]) -> None:
        """Report a refresh of all experiments."""

    def failed(self, experiments: int) -> None:
        """Report a refresh that could not compute any experiment."""


@dataclass(slots=True)
class ExperimentKeeper:
    """Refreshes the tables of experiments, at most once a minute. Reads the experiments again if their file changes.

    Gold's job waits for a refresh. So the next one begins at the earliest after nine times the duration of this one.

    Attributes:
        store: the lakehouse.
        games_file: the games contract; the experiments are in the same folder.
        progress: is called after each experiment.
        observer: is notified of each refresh.
        interval: the shortest time between two refreshes.
        pause: the shortest time between two refreshes, in durations of the first one.
    """

    store: Store
    games_file: Path
    progress: Callable[[], None] = lambda: None
    observer: ExperimentObserver | None = None
    interval: timedelta = _INTERVAL
    pause: float = _PAUSE
    _text: bytes | None = None
    _refresh: ExperimentRefresh | None = None
    _next: float = field(default=0.0)

    def __call__(self) -> Sequence[FailedRefresh]:
        """Refresh, if the interval is over; return what has failed."""
        started = time.monotonic()
        if started < self._next:
            return []
        try:
            return self._refreshed()
        finally:
            ended = time.monotonic()
            self._next = ended + max(self.interval.total_seconds(), self.pause * (ended - started))

    def _refreshed(self) -> Sequence[FailedRefresh]:
        try:
            self._load()
            done = self._refresh() if self._refresh is not None else ExperimentsRefreshed()
        except Exception as error:
            log.exception(
                "experiments_failed",
                error=f"{type(error).__name__}: {error}",
                action="keeps the former tables; tries again in a minute",
            )
            if self.observer is not None:
                self.observer.failed(len(self._experiments))
            return [FailedRefresh(table=STATISTICS.path, reason=str(error))]
        if self.observer is not None:
            self.observer.refreshed(done, self._experiments)
        if done.experiments:
            log.info("experiments_refreshed", days=done.days, experiments=list(done.experiments))
        return [FailedRefresh(table=STATISTICS.path, reason=f"the experiment '{each}' failed") for each in done.failed]

    @property
    def _experiments(self) -> Sequence[ExperimentSpec]:
        return self._refresh.contracts.experiments if self._refresh is not None else ()

    def _load(self) -> None:
        """Read the contracts if the file of experiments has changed.

        Raises:
            ContractError: a contract is wrong; names file and line.
        """
        file = self.games_file.with_name(EXPERIMENTS_FILE)
        text = file.read_bytes() if file.exists() else None
        if text == self._text:
            return
        contracts = load_contracts(self.games_file)
        self._refresh = None
        if contracts is not None:
            self._refresh = ExperimentRefresh(self.store, contracts, progress=self.progress)
        self._text = text
