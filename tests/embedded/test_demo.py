"""A small demo: it succeeds, reconciles, continues where the previous release ended, and leaves no process behind."""

import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.compute as pc
import pytest

from gamelake.delta.tables import open_table
from gamelake.objects.store import Location
from tests.support.eventually import eventually
from tests.support.process_table import descendants_of, still_running
from tools.demo.programs import SPARK_JARS
from tools.embedded.service import REPOSITORY

EVENTS, GAMES = 20_000, 5
SECONDS = 600
# The previous release; until there is a tag, the main branch of 2026-11-26. A release replaces it by its own tag.
PREVIOUS = "82e7ec781730b8d7c974594e4a44b9d770d1772f"

_GOLD = """
import json, sys
from pathlib import Path
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.runner import GoldTables, attempt
from gamelake.objects.store import Location, Store

tables = GoldTables(Store(Location(uri=sys.argv[1])), load_gold(Path("contracts/games.yaml")))
print(json.dumps({each.table: each.outcome for each in map(attempt, tables.now())}))
"""


@pytest.fixture(autouse=True)
def _jars(missing_service: Callable[[str], NoReturn]) -> None:
    if not SPARK_JARS.is_dir():
        missing_service(f"{SPARK_JARS} is missing: run `make setup`")


def command(directory: Path) -> tuple[str, ...]:
    """A small demo as `make demo` starts it."""
    asked = ("--events", str(EVENTS), "--games", str(GAMES), "--directory", str(directory))
    return (sys.executable, "-m", "tools.demo", *asked)


def demo(directory: Path, tree: Path = REPOSITORY) -> tuple[str, dict[str, Any]]:
    """Run that of a tree to its end. Return what it printed and its figures."""
    outcome = run_in(tree, *command(directory)[1:])
    assert outcome.stderr == ""
    return outcome.stdout, json.loads((directory / "summary.json").read_text())


def served(directory: Path, tree: Path = REPOSITORY) -> dict[str, str]:
    """Bring the gold tables of a demo up to date, by a tree's code; how each was refreshed."""
    lakehouse = f"file://{directory / 'lakehouse'}"
    outcomes: dict[str, str] = json.loads(run_in(tree, "-c", _GOLD, lakehouse).stdout)
    return outcomes


def run_in(tree: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Python with a tree's code until it ends, successfully."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = (sys.executable, *arguments)
    outcome = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome


@pytest.fixture
def previous_tree(tmp_path: Path, missing_service: Callable[[str], NoReturn]) -> Path:
    """The tree of the previous release, which runs with the packages and jars of this one."""
    tree, archive = tmp_path / "previous", tmp_path / "previous.tar"
    command = ("git", "-C", str(REPOSITORY), "archive", "--output", str(archive), PREVIOUS)
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        missing_service(f"the repository lacks {PREVIOUS}: run `git fetch --unshallow --tags`")
    with tarfile.open(archive) as content:
        content.extractall(tree, filter="data")
    (tree / "build").symlink_to(REPOSITORY / "build")
    return tree


def check_sums(summary: dict[str, Any], directory: Path) -> None:
    """The figures of one run must agree with each other and with the sent events."""
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


def check_second_demo(directory: Path, first: dict[str, Any]) -> int:
    """A demo continues with the data of the first one, and all of both is there once; the rows of both."""
    printed, second = demo(directory)

    assert "Reconciliation: no differences" in printed
    assert "Reconciliation: no differences" in (directory / "report.html").read_text()
    check_sums(second, directory)
    assert first["verdict"]["records_in_lakehouse"] == first["totals"]["records"]
    both = first["totals"]["records"] + second["totals"]["records"]
    assert second["verdict"]["records_in_lakehouse"] == both
    for before, after in zip(first["games"], second["games"], strict=True):
        assert after["rows_in_table"] == before["rows"] + after["rows"]
    assert second["gateway"]["players_in_vault"] >= first["gateway"]["players_in_vault"] > 0
    return int(first["totals"]["rows"] + second["totals"]["rows"])


def test_a_demo_finds_no_differences_and_its_figures_agree(tmp_path: Path) -> None:
    # A folder that a person may well choose: its name must survive URIs and command lines.
    directory = tmp_path / "my demo"

    printed, summary = demo(directory)

    assert "Reconciliation: no differences" in printed
    assert "Reconciliation: no differences" in (directory / "report.html").read_text()
    check_sums(summary, directory)


@pytest.mark.slow
def test_a_second_demo_goes_on_where_the_first_one_ended(tmp_path: Path) -> None:
    _, first = demo(tmp_path)

    check_second_demo(tmp_path, first)


# It also refreshes gold by the code of both trees.
@pytest.mark.slow
def test_a_demo_goes_on_where_that_of_the_previous_release_ended(tmp_path: Path, previous_tree: Path) -> None:
    """With its records in Kafka, schemas, tables, checkpoints, players in the vault and gold tables."""
    _, first = demo(tmp_path, previous_tree)
    tables = served(tmp_path, previous_tree)

    rows = check_second_demo(tmp_path, first)
    refreshed = served(tmp_path)

    assert refreshed.keys() >= tables.keys()
    assert set(refreshed.values()) <= {"merged", "partitions", "rebuilt"}
    lakehouse = tmp_path / "lakehouse"
    arrived = open_table(Location(uri=lakehouse.as_uri()), "gold/kpi_late").to_pyarrow_table()["arrived"]
    assert pc.sum(arrived).as_py() == rows


@pytest.mark.slow
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
