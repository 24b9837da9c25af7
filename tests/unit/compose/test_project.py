"""Each checkout has volumes of its own, because only its secrets open them."""

from pathlib import Path

import pytest

from tests.support.programs import Outcome, add_program, run_alone
from tests.unit.compose.configured import copy_scripts

# Lists a volume of each project in $PROJECTS.
DOCKER = """#!/bin/bash
for project in $PROJECTS; do [ "${!#}" != "label=com.docker.compose.project=$project" ] || echo "${project}_kafka"; done
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that has no secrets yet, in a folder whose name a project can not have."""
    folder = tmp_path / "My gl_2"
    copy_scripts(folder, "project.sh", "read_env.sh", ".env")
    add_program(folder / "bin" / "docker", DOCKER)
    return folder


def name_of(checkout: Path, projects: str, **variables: str) -> tuple[str, Outcome]:
    """Run the script next to the volumes of some projects; return the person's own settings."""
    outcome = run_alone((checkout / "compose/project.sh",), checkout / "bin", PROJECTS=projects, **variables)
    override = checkout / "compose/.env.override"
    return override.read_text() if override.exists() else "", outcome


def test_the_first_checkout_of_a_machine_has_the_plain_name(checkout: Path) -> None:
    settings, outcome = name_of(checkout, "")

    assert (settings, outcome.stdout, outcome.returncode) == ("", "", 0)


def test_a_checkout_without_secrets_gets_a_name_of_its_own_next_to_the_volumes_of_another_one(checkout: Path) -> None:
    settings, outcome = name_of(checkout, "gamelake")

    assert settings == "COMPOSE_PROJECT_NAME=gamelake-my-gl-2\n"
    assert "this one is gamelake-my-gl-2" in outcome.stdout
    assert name_of(checkout, "gamelake")[0] == settings


def test_a_name_that_has_volumes_is_not_used_again(checkout: Path) -> None:
    assert "=gamelake-my-gl-2-3\n" in name_of(checkout, "gamelake gamelake-my-gl-2 gamelake-my-gl-2-2")[0]


def test_a_persons_own_settings_stay(checkout: Path) -> None:
    (checkout / "compose/.env.override").write_text("TRINO_PORT=8085")

    assert name_of(checkout, "gamelake")[0] == "TRINO_PORT=8085\nCOMPOSE_PROJECT_NAME=gamelake-my-gl-2\n"


def test_a_checkout_with_secrets_keeps_its_volumes(checkout: Path) -> None:
    (checkout / "compose/secrets").mkdir()

    assert name_of(checkout, "gamelake")[0] == ""


def test_a_checkout_with_a_folder_of_secrets_in_another_place_keeps_its_volumes(checkout: Path) -> None:
    (checkout / "own secrets").mkdir()

    assert name_of(checkout, "gamelake", SECRETS_DIRECTORY=str(checkout / "own secrets"))[0] == ""


def test_a_name_that_a_person_has_chosen_counts(checkout: Path) -> None:
    assert name_of(checkout, "gamelake", COMPOSE_PROJECT_NAME="mine")[0] == ""
