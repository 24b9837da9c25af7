"""Prometheus gets the state of tasks, tables and retentions."""

import math
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest
from prometheus_client import CollectorRegistry

from gamelake.observability.metrics.endpoint import Heartbeat
from gamelake.observability.metrics.maintenance import MaintenanceTelemetry, MaintenanceTotal, TableFigures, TaskFigures
from gamelake.observability.metrics.repeating import Repeating
from tests.support.eventually import eventually
from tests.support.logged import logged

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def telemetry(registry: CollectorRegistry) -> MaintenanceTelemetry:
    return MaintenanceTelemetry(registry, Heartbeat(None))


def figures(ok: int, compacted: int) -> TaskFigures:
    return TaskFigures(
        name="pack",
        last_success=NOON,
        next_at=NOON + timedelta(hours=1),
        interval=timedelta(days=1),
        seconds=2.5,
        failures=1,
        runs={"ok": ok},
        totals={MaintenanceTotal.COMPACTED_FILES: compacted},
    )


def test_counters_are_what_all_runs_ever_did_by_any_process(
    registry: CollectorRegistry, telemetry: MaintenanceTelemetry
) -> None:
    telemetry.tasks([figures(ok=3, compacted=40)])
    telemetry.tasks([figures(ok=3, compacted=40)])
    telemetry.tasks([figures(ok=5, compacted=64)])

    assert registry.get_sample_value("gamelake_maintenance_compacted_files_total", {"task": "pack"}) == 64
    assert registry.get_sample_value("gamelake_maintenance_runs_total", {"task": "pack", "outcome": "ok"}) == 5
    # Before its first failure too: a series that is missing has no rate.
    assert registry.get_sample_value("gamelake_maintenance_runs_total", {"task": "pack", "outcome": "failed"}) == 0


def test_what_is_known_of_a_task_is_shown(registry: CollectorRegistry, telemetry: MaintenanceTelemetry) -> None:
    telemetry.tasks([figures(ok=0, compacted=0)])

    found = {
        name: registry.get_sample_value(f"gamelake_maintenance_{name}", {"task": "pack"})
        for name in (
            "task_last_success_timestamp_seconds",
            "task_next_run_timestamp_seconds",
            "task_interval_seconds",
            "task_last_run_seconds",
            "task_consecutive_failures",
        )
    }
    assert found == {
        "task_last_success_timestamp_seconds": NOON.timestamp(),
        "task_next_run_timestamp_seconds": NOON.timestamp() + 3600,
        "task_interval_seconds": 86_400,
        "task_last_run_seconds": 2.5,
        "task_consecutive_failures": 1,
    }


def test_a_table_that_is_gone_has_no_figures_any_more(
    registry: CollectorRegistry, telemetry: MaintenanceTelemetry
) -> None:
    telemetry.tables([TableFigures("silver/a_events", 12, 3_000, 2), TableFigures("silver/b_events", 1, 1, 0)])
    telemetry.tables([TableFigures("silver/a_events", 0, 0, 2)])

    names = ("pending_files", "pending_bytes", "skipped_files")
    shown = [registry.get_sample_value(f"gamelake_maintenance_table_{n}", {"table": "silver/a_events"}) for n in names]
    assert shown == [0, 0, 2]
    assert registry.get_sample_value("gamelake_maintenance_table_pending_files", {"table": "silver/b_events"}) is None


def test_retentions_are_seconds_and_for_ever_is_infinite(
    registry: CollectorRegistry, telemetry: MaintenanceTelemetry
) -> None:
    telemetry.retentions(
        {"kafka": timedelta.max, "tables": timedelta(days=14)}, {("kafka", "tables"): True, ("logs", "tables"): False}
    )

    assert registry.get_sample_value("gamelake_maintenance_retention_seconds", {"span": "kafka"}) == math.inf
    assert registry.get_sample_value("gamelake_maintenance_retention_seconds", {"span": "tables"}) == 14 * 86_400
    assert (
        registry.get_sample_value("gamelake_maintenance_retention_sufficient", {"longer": "kafka", "shorter": "tables"})
        == 1
    )
    assert (
        registry.get_sample_value("gamelake_maintenance_retention_sufficient", {"longer": "logs", "shorter": "tables"})
        == 0
    )


def test_a_poll_and_a_heartbeat_are_reported(registry: CollectorRegistry, tmp_path: Path) -> None:
    telemetry = MaintenanceTelemetry(registry, Heartbeat(tmp_path / "heartbeat"))

    telemetry.mark_alive()
    telemetry.polled()

    assert (tmp_path / "heartbeat").exists()
    looked = registry.get_sample_value("gamelake_maintenance_last_measurement_timestamp_seconds") or 0
    assert abs(time.time() - looked) < 60


def test_what_fails_once_is_done_again(caplog: pytest.LogCaptureFixture) -> None:
    polls: list[int] = []
    done = Event()

    def poll() -> None:
        polls.append(1)
        if len(polls) < 3:
            raise OSError("no answer")
        done.set()

    with Repeating("a poll", poll, timedelta(milliseconds=5)):
        eventually(done.is_set)

    (failed,) = logged(caplog, "poll_failed")
    assert (failed["poll"], str(failed["error"])) == ("a poll", "no answer")
