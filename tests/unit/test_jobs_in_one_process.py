"""Several jobs in one process: they start and end run_together, and the first failure is the process's."""

from pathlib import Path
from threading import Event

import pytest

from gamelake.model.errors import DataLossError, TransientError
from gamelake.program import run_together, run_with_restarts
from gamelake.serving.settings import ServingSettings
from gamelake.streaming.files.settings import AllSourcesSettings
from tests.support.failing import failing

VARIABLES = {
    "GAMELAKE_LAKEHOUSE": "file:///lake",
    "GAMELAKE_GAMES_FILE": "games.yaml",
    "GAMELAKE_BOOTSTRAP_SERVERS": "127.0.0.1:9092",
    "GAMELAKE_TOPIC": "events",
    "GAMELAKE_REGISTRY_URL": "http://127.0.0.1:8081",
    "GAMELAKE_METRICS_PORT": "9110",
    "GAMELAKE_HEARTBEAT_FILE": "/tmp/heartbeat",  # noqa: S108 # a name, and no file
    "GAMELAKE_LANDING": "file:///landing",
}


def test_the_end_of_one_job_stops_the_others_and_raises_its_error() -> None:
    stop, ended = Event(), []

    def patient() -> None:
        stop.wait(30)
        ended.append("patient")

    with pytest.raises(TransientError, match="the store is away"):
        run_together({"gold": patient, "live_ops": failing(TransientError("the store is away"))}, stop)
    assert ended == ["patient"]


def test_all_jobs_end_when_they_are_asked_to() -> None:
    stop = Event()
    stop.set()

    run_together({"gold": lambda: None, "live_ops": lambda: None}, stop)


def test_a_secondary_job_restarts_after_any_error_with_growing_pauses() -> None:
    stop, begun, errors = Event(), [], iter([TransientError("away"), DataLossError("gone"), ValueError("odd")])

    def failing() -> None:
        begun.append(1)
        if error := next(errors, None):
            raise error
        stop.set()

    run_with_restarts(failing, stop, pauses=[0.001, 0.002])

    assert len(begun) == 4


def test_a_secondary_job_does_not_restart_after_the_stop() -> None:
    stop, begun = Event(), []

    def failing() -> None:
        begun.append(1)
        stop.set()
        raise TransientError("away")

    run_with_restarts(failing, stop, pauses=[3600])

    assert len(begun) == 1


def test_each_job_has_its_own_metrics_port_and_heartbeat() -> None:
    settings = ServingSettings.from_env(VARIABLES)

    telemetry = (settings.gold.telemetry, settings.live_ops.reading.telemetry)
    assert [each.metrics_port for each in telemetry] == [9110, 9111]
    assert [each.heartbeat_file for each in telemetry] == [
        Path("/tmp/heartbeat.gold"),  # noqa: S108 # a name, and no file
        Path("/tmp/heartbeat.live_ops"),  # noqa: S108 # the same
    ]


def test_both_sources_read_topics_of_their_own_under_names_of_their_own() -> None:
    settings = AllSourcesSettings.from_env(VARIABLES)

    assert (settings.events.stream, settings.events.topic) == ("ingest_events", "events")
    assert (settings.files.reading.stream, settings.files.reading.topic) == ("ingest_files", "files.notifications")
    assert settings.events.telemetry.metrics_port == 9110
    assert settings.files.reading.telemetry.metrics_port == 9111
    assert settings.files.reading.telemetry.heartbeat_file == Path("/tmp/heartbeat.files")  # noqa: S108 # a name
