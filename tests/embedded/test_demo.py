"""A small demo: it succeeds, its figures reconcile, it continues after an interruption and leaves no process behind."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.eventually import eventually
from tests.process_table import descendants_of, still_running
from tools.demo.programs import SPARK_JARS
from tools.embedded.service import REPOSITORY

EVENTS, GAMES = 20_000, 5
SECONDS = 600


@pytest.fixture(autouse=True)
def _jars(missing_service: Callable[[str], NoReturn]) -> None:
    if not SPARK_JARS.is_dir():
        missing_service(f"{SPARK_JARS} is missing: run `make setup`")


def command(directory: Path) -> tuple[str, ...]:
    """A small demo as `make demo` starts it."""
    asked = ("--events", str(EVENTS), "--games", str(GAMES), "--directory", str(directory))
    return (sys.executable, "-m", "tools.demo", *asked)


def demo(directory: Path) -> tuple[str, dict[str, Any]]:
    """Run it to its end; give what it printed and its figures."""
    outcome = subprocess.run(
        command(directory), cwd=REPOSITORY, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert outcome.stderr == ""
    return outcome.stdout, json.loads((directory / "summary.json").read_text())


def check_sums(summary: dict[str, Any], directory: Path) -> None:
    """The figures of one run must agree with each other and with what was sent."""
    totals, games, batches = summary["totals"], summary["games"], summary["batches"]
    over_http = json.loads((directory / "ledger.http.json").read_text())
    straight = json.loads((directory / "ledger.kafka.json").read_text())
    sent = over_http["acknowledged"] + straight["sent"]
    assert totals["records"] == sent == sum(batch["records"] for batch in batches)
    assert totals["records"] == totals["rows"] + totals["dead_letters"] + totals["duplicates"]
    assert totals["duplicates"] == over_http["duplicates"] + straight["duplicates"]
    assert totals["rows"] == sum(game["rows"] for game in games) == sum(summary["histogram"]["rows"])
    assert totals["rows"] == sum(game["freshness"]["rows"] for game in games)
    assert totals["dead_letters"] == sum(summary["dead_letters"].values()) > 0
    assert len(games) == GAMES
    assert summary["samples"][-1]["produced"] == summary["samples"][-1]["taken"] == sent
    check_gateway(summary["gateway"], over_http)
    assert summary["verdict"]["problems"] == []


def check_gateway(gateway: dict[str, Any], ledger: dict[str, Any]) -> None:
    """Most of the traffic comes through it, and what it rejects is reported by reason."""
    assert gateway["acknowledged"] == ledger["acknowledged"] > 0.9 * EVENTS
    assert ledger["sent"] == ledger["acknowledged"] + sum(ledger["rejected"].values())
    assert set(gateway["rejected"]) == {"malformed", "no_event_time", "other_game"}
    assert gateway["players_in_vault"] >= gateway["players"] > 0
    assert gateway["personal_texts"] > 0


def test_a_second_demo_goes_on_where_the_first_one_ended(tmp_path: Path) -> None:
    # A folder that a person may well choose: its name must survive URIs and command lines.
    directory = tmp_path / "my demo"

    printed, first = demo(directory)
    _, second = demo(directory)

    assert "Reconciliation: no differences" in printed
    assert "Reconciliation: no differences" in (directory / "report.html").read_text()
    check_sums(second, directory)
    assert first["verdict"]["records_in_lakehouse"] == first["totals"]["records"]
    both = first["totals"]["records"] + second["totals"]["records"]
    assert second["verdict"]["records_in_lakehouse"] == both
    for before, after in zip(first["games"], second["games"], strict=True):
        assert after["rows_in_table"] == before["rows"] + after["rows"]


def test_ctrl_c_ends_everything(tmp_path: Path) -> None:
    with subprocess.Popen(command(tmp_path), cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert any(line.startswith("Simulating") for line in running.stdout)
        children = descendants_of(running.pid)

        running.send_signal(signal.SIGINT)
        running.communicate(timeout=SECONDS)

    assert running.returncode == 130
    # Kafka, the registry, the gateway with its worker, the job and two simulators, each on its tether.
    assert len(children) >= 13
    eventually(lambda: not still_running(children))
