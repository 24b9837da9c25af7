"""The gold job keeps the KPIs up: however it ends, they are what silver says once it has run again."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import JARS
from tests.support.silver_events import Silver, some_events
from tests.unit.serving.kpis.kpi_lake import KpiLake

REPOSITORY = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("spark")  # which says what this machine lacks


def run_gold(lake: KpiLake, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Run the job once, in a process of its own."""
    variables = os.environ | {
        "GAMELAKE_LAKEHOUSE": lake.silver.location.uri,
        "GAMELAKE_GAMES_FILE": str(REPOSITORY / "contracts/games.yaml"),
        "GAMELAKE_SPARK_JARS": str(JARS),
        "GAMELAKE_METRICS_PORT": "",
    }
    command = [sys.executable, "-m", "jobs.gold", "--once"]
    return subprocess.run(
        command, cwd=REPOSITORY, env=variables | settings, check=False, capture_output=True, text=True, timeout=300
    )


@pytest.mark.slow
def test_a_job_that_is_killed_between_two_commits_of_key_figures_goes_on_where_it_was(tmp_path: Path) -> None:
    lake, events = KpiLake(Silver(tmp_path)), some_events(200, seed=7)
    lake.take(events[:100])
    lake.silver.append(events[100:])

    killed = run_gold(lake, GAMELAKE_FAILPOINT="after_table_commit:2")
    done = run_gold(lake)

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert done.returncode == 0, done.stderr
    assert "gold/kpi_hourly" in {each["table"] for each in json.loads(done.stdout)}
    assert "kpis_refreshed" in done.stderr
    # Retention by the clock of this machine, long after the events.
    lake.check()
