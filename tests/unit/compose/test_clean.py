"""`make clean` lists what it would remove, asks, and removes only that."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.programs import Outcome, add_program, lines_of, run_alone
from tests.unit.compose.configured import COMPOSE

# It notes each removal and lists what the variables say.
FAKE_DOCKER = """#!/bin/bash
case "$*" in
  info) [ -z "$NO_ENGINE" ] ;;
  "volume ls --quiet --filter label=com.docker.compose.project=gamelake") printf '%s\\n' $VOLUMES ;;
  "ps --all --quiet --filter label=com.docker.compose.project=gamelake") echo a-container ;;
  "network ls --quiet --filter label=com.docker.compose.project=gamelake") echo a-network ;;
  *) echo "$*" >>"$LOG" ;;
esac
"""
REMOVALS = [
    "rm --force --volumes a-container",
    "network rm a-network",
    "volume rm gamelake_kafka",
    "volume rm gamelake_trino",
]


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout's build folder and a fake Docker."""

    folder: Path

    def clean(self, typed: str = "", *arguments: str, **variables: str) -> Outcome:
        """Run the script with this input."""
        folders = {"BUILD_DIRECTORY": str(self.folder / "build"), "LOG": str(self.folder / "calls")}
        variables = {"VOLUMES": "gamelake_kafka gamelake_trino"} | variables
        return run_alone((COMPOSE / "clean.sh", *arguments), self.folder / "bin", typed, **folders, **variables)

    @property
    def removals(self) -> list[str]:
        """The arguments of Docker's remove commands, in order."""
        return lines_of(self.folder / "calls")

    @property
    def left(self) -> list[str]:
        """The content of the build folder."""
        return sorted(path.name for path in (self.folder / "build").iterdir())


ALL = ["demo", "images.log", "jars", "java", "registry", "stamps"]
KEPT = ["jars", "java", "registry", "stamps"]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout where the demo and the stack have run."""
    add_program(tmp_path / "bin" / "docker", FAKE_DOCKER)
    for name in ("demo", *KEPT):
        (tmp_path / "build" / name).mkdir(parents=True)
        (tmp_path / "build" / name / "file").touch()
    (tmp_path / "build" / "images.log").touch()
    return Checkout(tmp_path)


def test_everything_is_listed_and_removed_after_a_yes(checkout: Checkout) -> None:
    outcome = checkout.clean("y\n")

    assert outcome.returncode == 0, outcome.stderr
    for named in (
        f"{checkout.folder}/build/demo",
        "build/images.log",
        "volume gamelake_kafka",
        "volume gamelake_trino",
    ):
        assert named in outcome.stdout
    assert "build/jars" not in outcome.stdout
    assert checkout.left == KEPT
    assert checkout.removals == REMOVALS


@pytest.mark.parametrize("typed", ["n\n", "\n", "", "Yes, but not now\n"], ids=["no", "enter", "no terminal", "other"])
def test_without_a_clear_yes_nothing_is_removed(checkout: Checkout, typed: str) -> None:
    outcome = checkout.clean(typed)

    assert outcome.returncode == 1
    assert "Nothing was removed." in outcome.stdout
    assert (checkout.left, checkout.removals) == (ALL, [])


def test_with_yes_set_there_is_no_prompt(checkout: Checkout) -> None:
    outcome = checkout.clean(YES="1")

    assert "[y/N]" not in outcome.stdout
    assert (checkout.left, checkout.removals) == (KEPT, REMOVALS)


def test_a_dry_run_lists_the_same_and_removes_nothing(checkout: Checkout) -> None:
    outcome = checkout.clean(DRY_RUN="1", YES="1")

    assert outcome.returncode == 0
    assert "volume gamelake_kafka" in outcome.stdout
    assert (checkout.left, checkout.removals) == (ALL, [])


def test_without_an_engine_local_data_is_removed_and_volumes_are_reported_as_kept(checkout: Checkout) -> None:
    outcome = checkout.clean("y\n", NO_ENGINE="1")

    assert outcome.returncode == 0
    assert "The Docker engine does not respond" in outcome.stdout
    assert (checkout.left, checkout.removals) == (KEPT, [])


def test_with_nothing_to_remove_there_is_no_prompt(checkout: Checkout) -> None:
    checkout.clean(YES="1")

    outcome = checkout.clean(VOLUMES="")

    assert (outcome.returncode, outcome.stdout) == (0, "There is nothing to remove.\n")


def test_all_that_make_made_is_listed_with_the_data_in_it_and_removed_after_a_yes(checkout: Checkout) -> None:
    (checkout.folder / ".venv").mkdir()
    (checkout.folder / "build/backups").mkdir()
    (checkout.folder / "mine").touch()

    outcome = checkout.clean("y\n", "--all-made")

    assert outcome.returncode == 0, outcome.stderr
    listed = [line.strip() for line in outcome.stdout.splitlines()]
    assert {str(checkout.folder / name) for name in (".venv", "build", "build/backups", "build/demo")} <= set(listed)
    assert sorted(path.name for path in checkout.folder.iterdir()) == ["bin", "mine"]
    assert checkout.removals == []


@pytest.mark.parametrize("typed", ["", "n\n", "\n"])
def test_without_a_yes_nothing_that_make_made_is_removed(checkout: Checkout, typed: str) -> None:
    (checkout.folder / ".venv").mkdir()

    assert checkout.clean(typed, "--all-made").returncode == 1
    assert checkout.clean("", "--all-made", DRY_RUN="1").returncode == 0

    assert (checkout.folder / ".venv").exists()
    assert checkout.left == ALL


def test_an_unknown_argument_removes_nothing(checkout: Checkout) -> None:
    assert checkout.clean("y\n", "--everything").returncode == 2
    assert checkout.left == ALL


def test_make_distclean_asks() -> None:
    recipe = (COMPOSE.parent / "Makefile").read_text().split("\ndistclean:")[1].split("\n\n")[0]

    assert recipe.split("\n")[1:] == ["\t@compose/clean.sh --all-made"]
