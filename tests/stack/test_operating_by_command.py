"""The command line on the running stack, as an operator uses it."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.stack.platform import ROOT, Stack
from tests.stack.secret_values import shown_in
from tests.support.eventually import eventually


def gamelake(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = (sys.executable, "-m", "gamelake", *arguments)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def no_load() -> Iterator[None]:
    """No load before the test and none after it."""
    gamelake("load", "stop")
    yield
    gamelake("load", "stop")


def test_the_status_has_services_streams_and_a_code_that_says_whether_all_is_healthy(stack: Stack) -> None:
    assert stack.is_healthy("ingest-events")

    shown = gamelake("status", "--json")

    status = json.loads(shown.stdout)
    assert {"service": "ingest-events", "state": "healthy", "is_healthy": True} in status["services"]
    assert {"ingest_events", "live_ops"} <= {each["query"] for each in status["streams"]}
    assert "create-topics" not in {each["service"] for each in status["services"]}
    is_healthy = all(each["is_healthy"] for each in status["services"]) and not status["alerts"]
    assert shown.returncode == (0 if is_healthy and all(each["runs"] for each in status["streams"]) else 1)


def test_addresses_are_listed_without_a_secret_and_one_secret_is_shown_on_request(stack: Stack) -> None:
    assert stack.is_healthy("trino")

    listed = gamelake("credentials", "--json")

    assert "Trino (SQL)" in {each["name"] for each in json.loads(listed.stdout)}
    assert shown_in(listed.stdout) == []
    assert "password=" in gamelake("credentials", "trino-analyst").stdout


def test_a_statement_is_answered_and_a_wrong_one_fails(stack: Stack) -> None:
    assert stack.is_healthy("trino")

    assert json.loads(gamelake("sql", "SELECT 6 * 7 AS answer", "--json").stdout) == {"answer": 42}
    assert gamelake("sql", "SELECT nothing").returncode == 1


@pytest.mark.usefixtures("no_load")
@pytest.mark.slow
def test_a_load_is_set_replaced_and_stopped(stack: Stack) -> None:
    before = stack.event_ids().total()

    assert gamelake("load", "set", "50", "--games", "2", "--minutes", "5").stdout == "50 events/s\n"
    eventually(lambda: stack.event_ids().total() > before, timeout=180)
    assert gamelake("load", "set", "20", "--minutes", "5").stdout == "20 events/s\n"
    assert json.loads(gamelake("load", "--json").stdout) == {"events_per_second": 20}

    assert gamelake("load", "stop").stdout == "no load\n"


def test_a_job_gets_its_arguments_and_its_exit_code_is_passed_on(stack: Stack) -> None:
    assert stack.is_healthy("object-store")

    assert "--before-batch" in gamelake("restore", "--help").stdout
    assert gamelake("restore", "silver/of_no_game", "--version", "0", "--dry-run").returncode == 2
