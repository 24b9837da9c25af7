"""Reports experiments as metrics: refreshes, and running experiments whose player counts don't match the shares."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType

import pyarrow.compute as pc
from deltalake.exceptions import TableNotFoundError

from gamelake.contract.experiments import ExperimentSpec
from gamelake.contract.time_zones import DEFAULT_ZONE, TimeZone
from gamelake.delta.appends import schema_of
from gamelake.delta.log.codec import live_files
from gamelake.delta.tables import open_table
from gamelake.model.observers import harmless
from gamelake.objects.store import Store
from gamelake.observability.metrics.serving.experiments import ExperimentTelemetry
from gamelake.scans.datasets import dataset
from gamelake.serving.experiments.refresh import ExperimentsRefreshed
from gamelake.serving.experiments.tables import RESULTS
from gamelake.serving.experiments.verdicts import ExperimentVerdict

# A running experiment has results up to today, or up to yesterday until its first refresh of the day.
_RECENT = timedelta(days=3)
_UTC: Mapping[str, str] = MappingProxyType({})


def _now() -> datetime:
    return datetime.now(UTC)


class ExperimentReporter:
    """An observer of refreshes; none of its methods raises. It reads the results only after a change.

    Args:
        store: the lakehouse.
        to: shows the metrics.
        zones: the time zone of each game, by its name; games without one are in UTC.
        now: returns the current time.
    """

    def __init__(
        self,
        store: Store,
        to: ExperimentTelemetry,
        zones: Mapping[str, str] = _UTC,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._store, self._to, self._zones, self._now = store, to, zones, now
        self._running: tuple[str, ...] | None = None
        self._mismatched: frozenset[str] = frozenset()

    @harmless
    def refreshed(self, done: ExperimentsRefreshed, experiments: Sequence[ExperimentSpec]) -> None:
        """Report a refresh of all experiments."""
        self._to.refreshed(len(done.failed))
        running = tuple(each.name for each in experiments if each.is_running(self._today(each.game)))
        if done.experiments or running != self._running:
            self._mismatched = self._read(self._today(""))
            self._running = running
        self._to.show(running, self._mismatched)

    @harmless
    def failed(self, experiments: int) -> None:
        """Report a refresh that could not compute any experiment."""
        self._to.failed(max(experiments, 1))

    def _today(self, game: str) -> date:
        return TimeZone(self._zones.get(game, DEFAULT_ZONE)).day(self._now())

    def _read(self, today: date) -> frozenset[str]:
        """Return the experiments whose newest verdict is `sample_ratio_mismatch`."""
        try:
            handle = open_table(self._store.location, RESULTS.path)
        except TableNotFoundError:
            return frozenset()
        rows = dataset(self._store.location, RESULTS.path, schema_of(handle), live_files(handle))
        recent = rows.to_table(
            columns=["experiment", "event_date", "verdict"], filter=pc.field("event_date") > today - _RECENT
        )
        newest: dict[str, tuple[date, str]] = {}
        for row in recent.to_pylist():
            name, state = row["experiment"], (row["event_date"], row["verdict"])
            if name not in newest or newest[name][0] < state[0]:
                newest[name] = state
        return frozenset(
            name for name, (_, verdict) in newest.items() if verdict == ExperimentVerdict.SAMPLE_RATIO_MISMATCH
        )
