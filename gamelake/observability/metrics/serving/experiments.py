"""The metrics of experiments: their refreshes, and experiments whose player counts don't match the shares."""

import time
from collections.abc import Collection, Mapping

from prometheus_client import CollectorRegistry

from gamelake.model.observers import harmless
from gamelake.observability.metrics import declared


class ExperimentTelemetry:
    """Is notified of refreshes; none of its methods raises."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._refreshed = declared.gauge(registry, "gamelake_experiments_refreshed_timestamp_seconds")
        self._held_back = declared.gauge(registry, "gamelake_experiments_held_back")
        self._mismatch = declared.gauge(registry, "gamelake_experiment_sample_ratio_mismatch", "experiment")
        self._shown: set[str] = set()
        # Until the first success, the statistics are as old as the job.
        self._refreshed.set(time.time())

    @harmless
    def refreshed(self, held_back: int) -> None:
        """Record a refresh; `held_back` is the number of experiments that it could not compute."""
        self._held_back.set(held_back)
        if not held_back:
            self._refreshed.set(time.time())

    @harmless
    def failed(self, held_back: int) -> None:
        """Record a refresh that could not compute any experiment."""
        self._held_back.set(held_back)

    @harmless
    def show(self, running: Collection[str], mismatched: Collection[str]) -> None:
        """Show the running experiments, and no others."""
        states: Mapping[str, bool] = {name: name in mismatched for name in running}
        for name in self._shown - states.keys():
            self._mismatch.remove(name)
        for name, is_mismatched in states.items():
            self._mismatch.labels(name).set(is_mismatched)
        self._shown = set(states)
