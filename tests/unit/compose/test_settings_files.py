"""compose/.env.override has one reader, which runs nothing of it and refuses what others would read in another way."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.compose.configured import COMPOSE
from tools import stack

READ = """. "$0/read_env.sh" && read_env "$0" && printf %s "$TRINO_PORT" """

PLAIN = [
    ("TRINO_PORT=8085", "8085"),
    ("  TRINO_PORT=8085\t ", "8085"),
    ("TRINO_PORT=8085\r", "8085"),
    ('TRINO_PORT="8085"', "8085"),
    ("TRINO_PORT='8085'", "8085"),
    ("TRINO_PORT=", ""),
    ("TRINO_PORT=a=b", "a=b"),
    ("TRINO_PORT=a b", "a b"),
    ("TRINO_PORT=a#b", "a#b"),
    ("TRINO_PORT='a #b'", "a #b"),
    ("\n# TRINO_PORT=1\n   # $(touch ran)\n\nTRINO_PORT=8085", "8085"),
]
REFUSED = [
    "TRINO_PORT=$(touch ran)",
    "TRINO_PORT=`touch ran`",
    'TRINO_PORT="$(touch ran)"',
    "TRINO_PORT='$(touch ran)'",
    "TRINO_PORT=$HOME",
    "TRINO_PORT=${HOME}",
    "TRINO_PORT=a\\b",
    "TRINO_PORT=8085 # mine",
    'TRINO_PORT="8085',
    "TRINO_PORT=80'85",
    'TRINO_PORT="80"85"',
    "export TRINO_PORT=8085",
    "TRINO_PORT = 8085",
    "TRINO_PORT: 8085",
    "trino_port=8085",
    "=8085",
    "1PORT=8085",
    "touch ran",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the reader and the project's own settings."""
    shutil.copy(COMPOSE / "read_env.sh", tmp_path)
    (tmp_path / ".env").write_text("TRINO_PORT=8080\nKAFKA_PORT=19092\nTLS=1\n")
    return tmp_path


def read_by_shell(folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = ("bash", "-euc", READ, str(folder))
    environment = {"PATH": os.environ["PATH"], **variables}
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


def read_by_python(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(stack, "COMPOSE", folder)
    monkeypatch.delenv("TRINO_PORT", raising=False)
    return stack.settings.__wrapped__()["TRINO_PORT"]


@pytest.mark.parametrize(("text", "value"), PLAIN)
def test_scripts_and_tools_read_the_same_value(
    folder: Path, text: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".env.override").write_bytes(text.encode())

    assert read_by_shell(folder).stdout == value
    assert read_by_python(folder, monkeypatch) == value
    assert read_by_shell(folder, TRINO_PORT="1").stdout == "1"


@pytest.mark.parametrize("line", REFUSED)
def test_a_line_that_could_be_read_in_two_ways_is_an_error_with_its_place_and_nothing_is_run(
    folder: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".env.override").write_text(f"KAFKA_PORT=1\n{line}\n")

    outcome = read_by_shell(folder)

    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert f"{folder}/.env.override:2: a line is NAME=value" in outcome.stderr
    with pytest.raises(stack.StackError, match=r"\.env\.override:2: a line is NAME=value"):
        read_by_python(folder, monkeypatch)
    assert not (folder / "ran").exists()


def test_no_script_has_a_reader_of_its_own() -> None:
    """One that sources a file, or hands it to docker compose, reads it by other rules."""
    others = [
        f"{script.name}: {line}"
        for script in COMPOSE.rglob("*.sh")
        if script.name != "read_env.sh"
        for line in script.read_text().splitlines()
        if re.search(r"^\s*(\.|source) \S*\.env\b|--env-file \.env\.override", line)
    ]

    assert others == []


def test_every_script_that_knows_the_stacks_name_reads_the_settings() -> None:
    unread = [
        script.name
        for script in COMPOSE.glob("*.sh")
        if "COMPOSE_PROJECT_NAME" in (text := script.read_text()) and "\nread_env " not in text
    ]

    assert unread == []
