"""The maintenance job as a process: one task, the plan, and the schedule until it is stopped."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from gamelake.maintenance.run_records import TaskRecord, TaskRecords
from tests.support.eventually import eventually
from tests.support.silver_events import Event, Silver

ROOT = Path(__file__).parents[3]
YESTERDAY = datetime.now(UTC) - timedelta(days=1)
SCHEDULE = """
tasks:
  - {name: pack, when: every 600 hours, job: compact, arguments: [--no-spark]}
  - {name: sweep, when: every 600 hours, job: vacuum, arguments: ["--yes"]}
"""
TABLE = "silver/events"


@dataclass(frozen=True)
class Place:
    """A lakehouse with twelve small files of a day that is over, and a schedule for it."""

    folder: Path
    silver: Silver

    def job(self, *arguments: str, **variables: str) -> "subprocess.Popen[str]":
        environment = os.environ | {
            "GAMELAKE_LAKEHOUSE": self.silver.store.location.uri,
            "GAMELAKE_GAMES_FILE": str(ROOT / "contracts/games.yaml"),
            "GAMELAKE_SCHEDULE_FILE": str(self.folder / "schedule.yaml"),
            **variables,
        }
        command = [sys.executable, "-m", *arguments]
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def maintenance(self, *arguments: str, **variables: str) -> tuple[int, str, str]:
        process = self.job("jobs.maintenance", *arguments, **variables)
        printed, logged = process.communicate(timeout=60)
        return process.returncode, printed, logged

    def result(self, *arguments: str, **variables: str) -> Any:  # noqa: ANN401 # a job's JSON
        code, printed, logged = self.maintenance(*arguments, **variables)
        assert code == 0, logged
        return json.loads(printed)

    @property
    def files(self) -> int:
        return len(DeltaTable(self.silver.folder / TABLE).file_uris())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    silver = Silver(tmp_path / "lake")
    for number in range(12):
        silver.append([Event(at=YESTERDAY, gamer=f"g{number}")])
    (tmp_path / "schedule.yaml").write_text(SCHEDULE)
    return Place(tmp_path, silver)


def test_a_task_that_is_asked_for_runs_and_is_recorded(place: Place) -> None:
    [report] = place.result("--once", "pack")

    assert (report["task"], report["outcome"], report["compacted_files"]) == ("pack", "ok", 12)
    assert place.files == 1
    record = TaskRecords(place.silver.store).of("pack", datetime.now(UTC))
    assert (record.runs_ok, record.done.compacted_files) == (1, 12)


def test_the_plan_says_when_each_task_runs_next_and_changes_nothing(place: Place) -> None:
    [pack, sweep] = place.result("--dry-run")

    assert (pack["command"], sweep["command"]) == ("python -m jobs.compact --no-spark", "python -m jobs.vacuum --yes")
    assert pack["next_at"] == sweep["next_at"] > datetime.now(UTC).isoformat()
    assert place.silver.store.paths("_gamelake/maintenance") == []


def test_a_task_that_fails_for_one_table_does_the_others_and_fails_the_job(place: Place) -> None:
    place.silver.store.put("silver/broken_events/_delta_log/00000000000000000000.json", b"{")

    code, printed, logged = place.maintenance("--once", "pack")

    assert code == 1
    assert json.loads(printed)[0]["outcome"] == "failed"
    assert json.loads(printed)[0]["compacted_files"] == 12
    assert ' task_failed task=pack outcome=failed problem="ended with' in logged


@pytest.mark.parametrize(
    ("schedule", "arguments", "problem"),
    [
        (SCHEDULE, ["--once", "compact"], "the schedule has no task 'compact'; its tasks are: pack or sweep"),
        (SCHEDULE.replace("job: compact", "job: compct"), ["--plan"], "there is no jobs/compct.py"),
        (
            SCHEDULE.replace("every 600 hours", "always"),
            ["--plan"],
            "schedule.yaml:3: 'always' is not a time of a schedule",
        ),
    ],
)
def test_a_mistake_is_reported_before_anything_runs(
    place: Place, schedule: str, arguments: list[str], problem: str
) -> None:
    (place.folder / "schedule.yaml").write_text(schedule)

    code, _, logged = place.maintenance(*arguments)

    assert code == 2
    assert problem in logged


def test_what_was_missed_is_made_up_for_and_sigterm_ends_the_job(place: Place) -> None:
    store, heartbeat = place.silver.store, place.folder / "heartbeat"
    TaskRecords(store).keep("pack", TaskRecord(known_since=datetime.now(UTC) - timedelta(days=90)))
    process = place.job("jobs.maintenance", GAMELAKE_HEARTBEAT_FILE=str(heartbeat))

    eventually(lambda: TaskRecords(store).of("pack", datetime.now(UTC)).runs_ok == 1)
    process.send_signal(signal.SIGTERM)
    _, logged = process.communicate(timeout=30)

    assert process.returncode == 0, logged
    assert (place.files, heartbeat.exists()) == (1, True)
    assert TaskRecords(store).of("sweep", datetime.now(UTC)).runs_ok == 0


def test_an_observer_measures_and_reports_but_runs_no_task(place: Place) -> None:
    store, heartbeat = place.silver.store, place.folder / "heartbeat"
    missed = TaskRecord(known_since=datetime.now(UTC) - timedelta(days=90))
    TaskRecords(store).keep("pack", missed)
    process = place.job("jobs.maintenance", "--observe", GAMELAKE_HEARTBEAT_FILE=str(heartbeat))

    # It touches the file after each round of the loop, in which the due task would have run.
    eventually(heartbeat.exists)
    process.send_signal(signal.SIGTERM)
    _, logged = process.communicate(timeout=60)

    assert process.returncode == 0, logged
    assert TaskRecords(store).of("pack", datetime.now(UTC)) == missed
    assert place.files == 12
