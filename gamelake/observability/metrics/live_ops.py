"""The telemetry of live operations: what was judged of the games goes in, signals that last come out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from prometheus_client import CollectorRegistry

from gamelake.observability.metrics.best_effort import harmless
from gamelake.observability.metrics.instruments import MetricDefinition, MetricKind


class LiveOpsMetric(Enum):
    """The metrics by what the code calls them; `monitoring/metrics.yaml` says at length what each means."""

    SIGNAL_LASTS = MetricDefinition(
        "gamelake_live_ops_signal_active",
        MetricKind.GAUGE,
        ("query", "game", "kind"),
        "1 while a signal about a game is active",
    )
    OBSERVED = MetricDefinition(
        "gamelake_live_ops_observed_ratio",
        MetricKind.GAUGE,
        ("query", "game", "measure"),
        "The last five evaluated minutes of a game, divided by the baseline",
    )
    JUDGED = MetricDefinition(
        "gamelake_live_ops_evaluated_timestamp_seconds",
        MetricKind.GAUGE,
        ("query",),
        "End of the newest evaluated minute, in event time",
    )
    STATES = MetricDefinition(
        "gamelake_live_ops_states_total", MetricKind.COUNTER, ("query",), "Player states that were published"
    )
    LATE_EVENTS = MetricDefinition(
        "gamelake_live_ops_late_events_total",
        MetricKind.COUNTER,
        ("query",),
        "Events that arrived after their minute was evaluated",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedFigures:
    """What a batch has changed; `signals` has 1 for each game and kind that has a signal, 0 for the others."""

    states: int
    late: int
    until: float | None
    signals: Mapping[tuple[str, str], int]
    ratios: Sequence[tuple[str, str, float]]


class LiveOpsTelemetry:
    """Is notified of each batch; its method does not raise."""

    def __init__(self, query: str, registry: CollectorRegistry) -> None:
        self._query = query
        self._gauges = {
            each: each.value.gauge(registry) for each in LiveOpsMetric if each.value.kind is MetricKind.GAUGE
        }
        self._counters = {
            each: each.value.counter(registry) for each in LiveOpsMetric if each.value.kind is MetricKind.COUNTER
        }
        # A series that is there from the start has a rate at its first event.
        for counter in self._counters.values():
            counter.labels(query)

    @harmless
    def judged(self, judged: JudgedFigures) -> None:
        """A batch was judged."""
        self._counters[LiveOpsMetric.STATES].labels(self._query).inc(judged.states)
        self._counters[LiveOpsMetric.LATE_EVENTS].labels(self._query).inc(judged.late)
        if judged.until is not None:
            self._gauges[LiveOpsMetric.JUDGED].labels(self._query).set(judged.until)
        for (game, kind), lasts in judged.signals.items():
            self._gauges[LiveOpsMetric.SIGNAL_LASTS].labels(self._query, game, kind).set(lasts)
        for game, measure, ratio in judged.ratios:
            self._gauges[LiveOpsMetric.OBSERVED].labels(self._query, game, measure).set(ratio)
