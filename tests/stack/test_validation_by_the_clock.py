"""`make quality-daily`: a task validates a day that is over, Data Docs show it, Prometheus sees the run."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.stack.platform import Stack
from tests.stack.prometheus import Prometheus
from tests.support.eventually import eventually
from tools.stack import page

TASK, SERVICES = "validate", ("quality", "data-docs")
# Prometheus resolves the name every 30 s, the job polls its tasks every 15 s.
SHOWN_SECONDS = 90


@pytest.fixture
def quality(stack: Stack) -> Iterator[Stack]:
    """The stack with the two services that are optional."""
    stack.compose("up", "--detach", "--wait", "--no-deps", *SERVICES)
    yield stack
    stack.compose("rm", "--stop", "--force", *SERVICES)


def yesterday() -> str:
    return (datetime.now(UTC) - timedelta(days=1)).date().isoformat()


@pytest.mark.slow
def test_a_day_is_validated_by_the_clock_and_its_data_docs_are_shown(quality: Stack) -> None:
    day_before = yesterday()
    reported = json.loads(
        quality.compose("exec", "--no-TTY", "quality", "python", "-m", "jobs.maintenance", "--once", TASK)
    )

    assert [(each["task"], each["outcome"]) for each in reported] == [(TASK, "ok")]
    index = page("DATA_DOCS_PORT", "/index.html").text
    # Two days, if the validation began before midnight.
    assert any(day in index for day in (day_before, yesterday()))
    succeeded = f'gamelake_maintenance_runs_total{{job="quality", task="{TASK}", outcome="ok"}}'
    eventually(lambda: Prometheus().values(succeeded) == [1], timeout=SHOWN_SECONDS)
