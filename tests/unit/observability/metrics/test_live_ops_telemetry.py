"""What live operations show to Prometheus."""

from prometheus_client import CollectorRegistry

from gamelake.observability.metrics.serving.live_ops import JudgedFigures, LiveOpsTelemetry

GAME = {"query": "live_ops", "game": "archery_duel"}


def test_what_a_game_had_and_which_signals_last_is_shown_until_the_next_batch() -> None:
    registry = CollectorRegistry()
    telemetry = LiveOpsTelemetry("live_ops", registry)

    falls = {("archery_duel", "bookings_fall"): 1}
    telemetry.judged(
        JudgedFigures(states=7, late=2, until=1_000.0, signals=falls, ratios=[("archery_duel", "bookings", 0.25)])
    )
    telemetry.judged(
        JudgedFigures(states=1, late=0, until=None, signals={("archery_duel", "bookings_fall"): 0}, ratios=[])
    )

    def shown(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"gamelake_live_ops_{name}", {"query": "live_ops"} | labels)

    assert shown("observed_ratio", **GAME, measure="bookings") == 0.25
    assert shown("signal_active", **GAME, kind="bookings_fall") == 0
    assert shown("evaluated_timestamp_seconds") == 1_000
    assert (shown("states_total"), shown("late_events_total")) == (8, 2)
