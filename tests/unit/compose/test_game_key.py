"""Replacing a game's secret while both are valid, in the folder that the gateway's container has."""

import os
from pathlib import Path

import pytest

from gamelake.contract.games import load_games
from services.gateway.authentication import Role, read_keys
from tests.support.programs import Outcome, run_alone
from tests.unit.compose.configured import COMPOSE, ON_A_FULL_DISK

GAMES = COMPOSE.parent / "contracts" / "games.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The secrets as a first `make up` makes them."""
    run_alone((COMPOSE / "secrets.sh",), SECRETS_DIRECTORY=tmp_path).check_returncode()
    return tmp_path


def run(folder: Path, *arguments: str, command: tuple[str, ...] = ()) -> Outcome:
    return run_alone((*command, str(COMPOSE / "game_key.sh"), *arguments), SECRETS_DIRECTORY=folder)


def secrets_of(folder: Path, key: str) -> tuple[str, ...]:
    return read_keys(folder / "ingest-keys/keys.yaml", load_games(GAMES))[key].secrets


def test_a_second_secret_is_added_and_the_first_is_removed(folder: Path) -> None:
    (first,) = secrets_of(folder, "kart_rumble-1")
    others = (folder / "ingest-keys/keys.yaml").read_text().replace(first, "")

    assert run(folder, "add", "kart_rumble-1").returncode == 0
    kept, second = secrets_of(folder, "kart_rumble-1")
    assert kept == first
    assert run(folder, "retire", "kart_rumble-1").returncode == 0

    assert secrets_of(folder, "kart_rumble-1") == (second,)
    assert (folder / "ingest-keys/keys.yaml").read_text().replace(second, "") == others


def test_a_container_that_has_the_folder_sees_the_new_file_whole(folder: Path) -> None:
    before = (folder / "ingest-keys/keys.yaml").stat()
    mounted = os.open(folder / "ingest-keys", os.O_RDONLY)

    run(folder, "add", "kart_rumble-1")

    after = os.stat("keys.yaml", dir_fd=mounted)
    os.close(mounted)
    assert after.st_ino != before.st_ino
    assert after.st_mode == before.st_mode


@pytest.mark.parametrize("arguments", [("add", "kart_rumble-1"), ("support", "kart_rumble")])
def test_a_full_disk_costs_no_key(folder: Path, arguments: tuple[str, str]) -> None:
    before = (folder / "ingest-keys/keys.yaml").read_text()

    outcome = run(folder, *arguments, command=ON_A_FULL_DISK)

    assert outcome.returncode == 1
    assert "the keys are as they were" in outcome.stderr
    assert (folder / "ingest-keys/keys.yaml").read_text() == before


def test_no_secret_is_shown(folder: Path) -> None:
    shown = run(folder, "add", "kart_rumble-1").stdout + run(folder, "retire", "kart_rumble-1").stdout

    assert not any(secret in shown for secret in secrets_of(folder, "kart_rumble-1"))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "usage"),
        (("add",), "usage"),
        (("add", "Kart Rumble"), "usage"),
        (("change", "kart_rumble-1"), "usage"),
        (("support", "chess"), "has no key of the game chess"),
        (("add", "chess-1"), "has no key chess-1"),
        (("retire", "kart_rumble-1"), "has only one secret"),
    ],
)
def test_an_impossible_change_is_reported_and_changes_nothing(
    folder: Path, arguments: tuple[str, ...], problem: str
) -> None:
    before = (folder / "ingest-keys/keys.yaml").read_text()

    outcome = run(folder, *arguments)

    assert outcome.returncode == 1
    assert problem in outcome.stderr
    assert (folder / "ingest-keys/keys.yaml").read_text() == before


def test_a_third_secret_is_refused(folder: Path) -> None:
    run(folder, "add", "kart_rumble-1")

    assert "already has two secrets" in run(folder, "add", "kart_rumble-1").stderr


def test_a_support_key_is_created_once_and_the_games_own_stays(folder: Path) -> None:
    before = (folder / "ingest-keys/keys.yaml").read_text()

    assert run(folder, "support", "kart_rumble").returncode == 0

    key = read_keys(folder / "ingest-keys/keys.yaml", load_games(GAMES))["kart_rumble-support"]
    assert (key.game, key.role) == ("kart_rumble", Role.SUPPORT)
    assert (folder / "ingest-keys/keys.yaml").read_text().startswith(before)
    assert "already has a support key" in run(folder, "support", "kart_rumble").stderr
    assert run(folder, "add", "kart_rumble-support").returncode == 0
    assert len(secrets_of(folder, "kart_rumble-support")) == 2
    assert len(secrets_of(folder, "kart_rumble-1")) == 1
