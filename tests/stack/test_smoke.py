"""Tools at the terminal: the smoke test, simulated players at a rate, the table of addresses."""

import json
import subprocess

import pytest

from tests.stack.platform import ROOT, Stack
from tests.stack.secret_values import shown_in
from tests.support.eventually import eventually
from tools.stack import scheme

STEPS = ["signed", "acknowledged", "decided", "committed", "registered", "visible"]
SMOKE = ("python", "-m", "tools.smoke")


def run_tools(stack: Stack, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in the container that `make smoke` runs in."""
    arguments = (str(ROOT / "compose/stack.sh"), "run", "--rm", "--no-deps", "--no-TTY", "tools", *command)
    return subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)


def test_one_event_is_followed_from_the_gateway_to_trino(stack: Stack) -> None:
    done = run_tools(stack, *SMOKE, "--patience", "120", "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert [step["step"] for step in document["steps"]] == STEPS
    seconds = [step["seconds"] for step in document["steps"]]
    assert seconds == sorted(seconds)
    assert document["acknowledged_to_trino_seconds"] > 0
    assert stack.event_ids(document["table"])[document["event_id"]] == 1
    assert stack.event_ids()[document["event_id"]] == 1


def test_the_steps_are_printed_line_by_line(stack: Stack) -> None:
    done = run_tools(stack, *SMOKE, "--patience", "120", "--game", "kart_rumble")

    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[2] for line in lines[:-1]] == STEPS
    assert "of silver/kart_rumble_events" in lines[3]
    assert lines[-1].startswith("Trino returned the event")


def test_two_events_are_two_rows(stack: Stack) -> None:
    first, second = (json.loads(run_tools(stack, *SMOKE, "--json").stdout) for _ in range(2))

    assert first["event_id"] != second["event_id"]


@pytest.mark.slow
def test_a_step_that_does_not_happen_is_reported_with_the_next_command(stack: Stack) -> None:
    """While the query stands still, the gateway has taken the event and no batch does."""
    stack.pause("ingest-events")
    try:
        done = run_tools(stack, *SMOKE, "--patience", "5", "--json")
    finally:
        stack.compose("unpause", "ingest-events")

    assert done.returncode == 1, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert [step["step"] for step in document["steps"]] == ["signed", "acknowledged"]
    assert document["failed"]["step"] == "decided"
    assert "make logs S=ingest-events" in document["failed"]["next"]
    stack.await_health("ingest-events")


def test_players_are_simulated_at_a_rate_and_all_their_events_arrive(stack: Stack) -> None:
    before = stack.event_ids().total()

    events = 2_000
    simulator = ("python", "-m", "tools.simulator", "--target", "http", "--url", f"{scheme()}://ingest:8000")
    who = ("--keys-file", "/run/secrets/ingest-keys/keys.yaml")
    how_many = ("--events", str(events), "--rate", "500", "--games", "3", "--seed", "11")
    clean = ("--undecodable", "0", "--unknown-game", "0", "--null-time", "0", "--duplicate", "0")
    done = run_tools(stack, *simulator, *who, *how_many, *clean)

    assert done.returncode == 0, done.stderr
    eventually(lambda: stack.event_ids().total() >= before + events, timeout=120)


def test_the_table_of_addresses_names_each_published_service_and_no_secret(stack: Stack) -> None:
    shown = subprocess.run((str(ROOT / "compose/urls.sh"),), capture_output=True, text=True, check=True).stdout

    assert stack.is_healthy("ingest-events")
    for address in (
        f"{scheme()}://127.0.0.1:8080",
        "127.0.0.1:19092",
        f"{scheme()}://127.0.0.1:9001",
        "https://127.0.0.1:4040",
        f"{scheme()}://127.0.0.1:8000",
    ):
        assert address in shown
    assert shown_in(shown) == []
