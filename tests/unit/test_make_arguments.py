"""A misspelt argument of make is an error that names what it may be, and results are all that `make sql` prints."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import add_program

REPOSITORY = Path(__file__).resolve().parents[2]
# The programs of a checkout that `make setup` has made, as empty files.
MADE = (
    "build/stamps/environment", "build/stamps/java", "build/stamps/native", "build/stamps/jars",
    "build/jars/spark.jsa", "build/apache-maven/bin/mvn",
)  # fmt: skip
PYTHON = "#!/bin/sh\necho '[]'\n"


def make(*arguments: str, folder: Path = REPOSITORY) -> "subprocess.CompletedProcess[str]":
    """Run make, without the settings of a make that runs the tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "GAMELAKE_"))}
    return subprocess.run(
        ("/usr/bin/make", *arguments), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("ENGINE=duck", "ENGINE is 'duck'; it must be one of: trino duckdb spark"),
        ("ON=dve", "ON is 'dve'; it must be one of: demo dev stack"),
        ("FORMAT=xml", "FORMAT is 'xml'; it must be one of: table csv json jsonl"),
        ("ENGINE=duckdb ON=stack", "ON=stack: only Trino has the stack's tables; leave ENGINE out"),
        ("YES=0", "YES is '0'; it must be 1"),
        ("DRY_RUN=no", "DRY_RUN is 'no'; it must be 1"),
    ],
)
def test_a_misspelt_choice_is_named_before_anything_runs(argument: str, problem: str) -> None:
    ended = make("--dry-run", "sql", *argument.split())

    assert ended.returncode == 2
    assert problem in ended.stderr
    assert ended.stdout == ""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in a folder whose name has a space; what `make setup` makes is there, and does nothing."""
    folder = tmp_path / "my games" / "gl 2"
    folder.mkdir(parents=True)
    for each in REPOSITORY.iterdir():
        if each.name not in {".git", ".venv", "Makefile", "build"}:
            (folder / each.name).symlink_to(each)
    shutil.copy(REPOSITORY / "Makefile", folder)
    for name in MADE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    add_program(folder / ".venv/bin/python", PYTHON)
    return folder


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_query_prints_its_result_and_nothing_of_make(checkout: Path, form: str) -> None:
    asked = make("sql", "ENGINE=duckdb", "ON=dev", "Q=SELECT 1", f"FORMAT={form}", folder=checkout)

    assert (asked.returncode, asked.stdout) == (0, "[]\n"), asked.stderr


def test_the_ports_of_make_dev_are_chosen_by_make(checkout: Path) -> None:
    planned = make("--dry-run", "dev", "RATE=abc", "FIRST_PORT=18000", folder=checkout).stdout

    assert "-m tools.dev --rate 'abc' --games '30' \\\n  --first-port '18000'" in planned


def test_no_recipe_splits_the_path_of_a_checkout_at_its_spaces(checkout: Path) -> None:
    # `release` would run programs, since its lines run make.
    text = (REPOSITORY / "Makefile").read_text()
    targets = next(line.split()[1:] for line in text.splitlines() if line.startswith(".PHONY: "))
    listed = make("--dry-run", *(each for each in targets if each != "release"), folder=checkout)

    assert listed.returncode == 0, listed.stderr
    split = [line for line in listed.stdout.splitlines() if _splits(line, str(checkout))]
    assert split == []


def _splits(line: str, folder: str) -> bool:
    """Return True if the line has the folder outside of quotes."""
    before = line.split(folder)[:-1]
    return any(text.count("'") % 2 == 0 and text.count('"') % 2 == 0 for text in before)
