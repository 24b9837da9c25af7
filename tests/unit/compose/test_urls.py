"""The table that ends `make up`: addresses of running services only, and never a password."""

from pathlib import Path

import pytest

from tests.support.programs import Outcome, add_program, run_alone
from tests.unit.compose.configured import COMPOSE


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A compose directory and a fake docker that lists the services of `$RUNNING`."""
    add_program(tmp_path / "bin" / "docker", '#!/bin/bash\nprintf "%s\\n" $RUNNING\n')
    text = (COMPOSE / ".env").read_text()
    (tmp_path / ".env").write_text(text)
    return tmp_path


def table(directory: Path, running: str, *arguments: str, **variables: str) -> Outcome:
    return run_alone(
        (COMPOSE / "urls.sh", *arguments), directory / "bin", COMPOSE_DIRECTORY=directory, RUNNING=running, **variables
    )


def test_each_running_service_has_its_address_and_users(directory: Path) -> None:
    shown = table(directory, "trino kafka grafana").stdout

    assert "https://127.0.0.1:8080" in shown
    assert "analyst, password in compose/secrets/trino-analyst" in shown
    assert "admin, password in compose/secrets/grafana-password" in shown
    assert "127.0.0.1:19092" in shown
    assert "make smoke" in shown


def test_what_does_not_run_has_no_line(directory: Path) -> None:
    shown = table(directory, "trino").stdout

    assert "Grafana" not in shown
    assert "Kafka" not in shown


def test_without_grafana_the_dashboards_are_on_the_portal(directory: Path) -> None:
    page = "http://127.0.0.1:8089/d/gamelake-lag"

    assert page in table(directory, "portal trino").stdout
    assert page not in table(directory, "portal grafana").stdout
    assert page not in table(directory, "trino").stdout


def test_while_the_portal_does_not_respond_the_command_that_opens_it_is_the_last_line(directory: Path) -> None:
    shown = table(directory, "portal trino")

    assert shown.returncode == 0
    assert "gamelake portal" in shown.stdout.splitlines()[-1]
    assert "gamelake portal" not in table(directory, "trino").stdout


def test_a_port_from_the_override_file_is_the_one_printed(directory: Path) -> None:
    (directory / ".env.override").write_text("TRINO_PORT=18080\n")

    assert "https://127.0.0.1:18080" in table(directory, "trino").stdout


def test_a_program_gets_the_same_addresses_with_tabs_and_nothing_else(directory: Path) -> None:
    lines = table(directory, "trino kafka", "--tabs").stdout.splitlines()

    assert [line.split("\t")[:3] for line in lines] == [
        ["trino", "Trino (SQL)", "https://127.0.0.1:8080"],
        ["kafka", "Kafka", "127.0.0.1:19092"],
    ]
    assert all(len(line.split("\t")) == 4 for line in lines)


def test_without_a_running_stack_it_says_how_to_start_one(directory: Path) -> None:
    outcome = table(directory, "")

    assert outcome.returncode == 1
    assert "make up" in outcome.stderr
