"""`make backup` is of the platform that was asked for, and fails if that does not run."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import Outcome, add_program, run_alone
from tests.unit.compose.configured import COMPOSE, copy_scripts

RUNS, STOPPED, REFUSED = "echo a-container", "true", "echo permission denied >&2; false"


def backup(checkout: Path, docker: str, *arguments: str) -> Outcome:
    """Run the script in a checkout whose Python prints its arguments, with this instead of Docker."""
    for name, text in {"bin/docker": docker, ".venv/bin/python": 'echo "$@"'}.items():
        add_program(checkout / name, f"#!/bin/bash\n{text}\n")
    copy_scripts(checkout, "backup.sh", "read_env.sh")
    return run_alone((checkout / "compose/backup.sh", *arguments), checkout / "bin")


def test_the_running_stack_is_backed_up(tmp_path: Path) -> None:
    assert backup(tmp_path, RUNS, "make", "--keep", "8").stdout == "-m tools.backup --stack make --keep 8\n"


@pytest.mark.parametrize(
    ("docker", "problem"), [(STOPPED, "the stack does not run"), (REFUSED, "the Docker engine of the stack")]
)
def test_a_stack_that_does_not_run_is_an_error_and_no_backup_of_the_demo(
    tmp_path: Path, docker: str, problem: str
) -> None:
    outcome = backup(tmp_path, docker, "make")

    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert problem in outcome.stderr


@pytest.mark.parametrize("docker", [RUNS, STOPPED, REFUSED])
def test_the_demo_is_backed_up_where_that_is_asked_for(tmp_path: Path, docker: str) -> None:
    assert backup(tmp_path, docker, "--demo", "make").stdout == "-m tools.backup --demo make\n"


@pytest.mark.parametrize("arguments", [(), ("--dev", "make"), ("remove",)])
def test_other_arguments_are_an_error(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert backup(tmp_path, RUNS, *arguments).returncode == 2


@pytest.mark.parametrize(
    ("settings", "script"),
    [
        ((), "compose/backup.sh make"),
        (("ON=demo",), "compose/backup.sh --demo make"),
        (("DEST=/mnt", "KEEP=3"), "compose/backup.sh make --to '/mnt' --keep 3"),
    ],
)
def test_make_names_the_platform(settings: tuple[str, ...], script: str) -> None:
    make = shutil.which("make") or pytest.skip("make is missing")
    command = (make, "--dry-run", "backup", *settings)
    shown = subprocess.run(command, cwd=COMPOSE.parent, capture_output=True, text=True, check=True).stdout

    assert script in " ".join(shown.split())
