"""The telemetry of live operations: what was judged of the games goes in, signals that last come out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from gamelake.model.observers import harmless
from gamelake.observability.metrics import declared


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedFigures:
    """The changes of a batch; `signals` has 1 for each game and kind that has a signal, 0 for the others."""

    states: int
    late: int
    until: float | None
    signals: Mapping[tuple[str, str], int]
    ratios: Sequence[tuple[str, str, float]]


class LiveOpsTelemetry:
    """Is notified of each batch; its method does not raise."""

    def __init__(self, query: str, registry: CollectorRegistry) -> None:
        self._query = query
        self._signals = declared.gauge(registry, "gamelake_live_ops_signal_active", "query", "game", "kind")
        self._observed = declared.gauge(registry, "gamelake_live_ops_observed_ratio", "query", "game", "measure")
        self._evaluated = declared.gauge(registry, "gamelake_live_ops_evaluated_timestamp_seconds", "query")
        # A series that is there from the start has a rate at its first event.
        self._states = declared.counter(registry, "gamelake_live_ops_states_total", "query").labels(query)
        self._late_events = declared.counter(registry, "gamelake_live_ops_late_events_total", "query").labels(query)

    @harmless
    def judged(self, judged: JudgedFigures) -> None:
        """Show the figures of a judged batch."""
        self._states.inc(judged.states)
        self._late_events.inc(judged.late)
        if judged.until is not None:
            self._evaluated.labels(self._query).set(judged.until)
        for (game, kind), lasts in judged.signals.items():
            self._signals.labels(self._query, game, kind).set(lasts)
        for game, measure, ratio in judged.ratios:
            self._observed.labels(self._query, game, measure).set(ratio)
