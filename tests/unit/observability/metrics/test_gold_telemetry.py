"""What the runs of gold show to Prometheus."""

import time
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gamelake.observability.metrics.endpoint import Heartbeat
from gamelake.observability.metrics.serving.gold import FAILED, HELD, GoldTelemetry, RefreshFigures

TABLE = "gold/archery_player_agg"


def poll(outcome: str, rows: int = 0) -> RefreshFigures:
    return RefreshFigures(table=TABLE, outcome=outcome, rows=rows, every=timedelta(seconds=30))


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def test_a_table_that_was_brought_up_to_date_is_seen_with_its_rows_and_its_interval(
    registry: CollectorRegistry,
) -> None:
    telemetry = GoldTelemetry(registry, Heartbeat(None))

    telemetry.table_refreshed(poll("merged", rows=7))
    telemetry.table_refreshed(poll("unchanged"))

    assert registry.get_sample_value("gamelake_gold_refreshes_total", {"outcome": "merged"}) == 1
    assert registry.get_sample_value("gamelake_gold_rows_written_total", {"table": TABLE}) == 7
    assert registry.get_sample_value("gamelake_gold_table_interval_seconds", {"table": TABLE}) == 30
    assert (registry.get_sample_value("gamelake_gold_table_refreshed_timestamp_seconds", {"table": TABLE}) or 0) > 0


@pytest.mark.parametrize("outcome", [FAILED, HELD])
def test_a_table_that_never_succeeded_or_is_held_back_is_as_old_as_the_job(
    registry: CollectorRegistry, outcome: str
) -> None:
    telemetry = GoldTelemetry(registry, Heartbeat(None))
    started = registry.get_sample_value("gamelake_gold_last_run_timestamp_seconds")
    assert started == pytest.approx(time.time(), abs=60)

    telemetry.table_refreshed(poll(outcome))

    assert registry.get_sample_value("gamelake_gold_refreshes_total", {"outcome": outcome}) == 1
    assert registry.get_sample_value("gamelake_gold_table_refreshed_timestamp_seconds", {"table": TABLE}) == started


def test_a_table_that_fails_after_a_success_is_as_old_as_that(registry: CollectorRegistry) -> None:
    telemetry = GoldTelemetry(registry, Heartbeat(None))
    telemetry.table_refreshed(poll("merged"))
    refreshed = registry.get_sample_value("gamelake_gold_table_refreshed_timestamp_seconds", {"table": TABLE})

    telemetry.table_refreshed(poll(FAILED))

    assert registry.get_sample_value("gamelake_gold_table_refreshed_timestamp_seconds", {"table": TABLE}) == refreshed


def test_a_job_that_has_nothing_to_do_gives_a_sign_of_life_too(registry: CollectorRegistry, tmp_path: Path) -> None:
    GoldTelemetry(registry, Heartbeat(tmp_path / "heartbeat")).mark_alive()

    assert (tmp_path / "heartbeat").exists()
    assert (registry.get_sample_value("gamelake_gold_last_run_timestamp_seconds") or 0) > 0
