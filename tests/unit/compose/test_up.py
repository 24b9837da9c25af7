"""`make up` is a list of steps, and ends at the first one that fails."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.programs import add_program, run_alone
from tests.unit.compose.configured import copy_scripts

STEPS = (
    "project.sh", "doctor.sh", "secrets.sh", "images.sh", "official.sh", "prebuilt.sh", "certificates.sh",
    "passwords.sh", "stack.sh", "urls.sh",
)  # fmt: skip
# Each step notes how it was called; $FAILING is the one that fails.
FAKE_STEP = """#!/bin/bash
echo "${0##*/}${*:+ $*}" >>"$LOG"
[ "${0##*/}" != "$FAILING" ]
"""
UP = "stack.sh{0} up --detach --remove-orphans --wait --wait-timeout 900 --scale spark-worker={1}"
RELOADS = [f"stack.sh exec --no-TTY {service} sh -c kill -HUP 1" for service in ("prometheus", "alertmanager")]


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout whose steps only note that they were called."""

    folder: Path

    def up(self, *arguments: str, **variables: str) -> tuple[int, list[str]]:
        """Run the script. Return its exit code and the steps."""
        log = self.folder / "log"
        outcome = run_alone((self.folder / "compose/up.sh", *arguments), LOG=log, **variables)
        return outcome.returncode, log.read_text().splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """The script among steps that do nothing."""
    copy_scripts(tmp_path, "up.sh", "read_env.sh", ".env")
    for name in STEPS:
        add_program(tmp_path / "compose" / name, FAKE_STEP)
    return Checkout(tmp_path)


def test_the_machine_is_checked_first_and_rules_are_loaded_before_the_addresses_are_printed(checkout: Checkout) -> None:
    code, steps = checkout.up()

    assert code == 0
    assert steps == [
        "project.sh",
        "doctor.sh",
        "secrets.sh",
        "images.sh",
        "certificates.sh",
        "passwords.sh",
        UP.format("", 1),
        *RELOADS,
        "urls.sh",
    ]


def test_the_minimal_option_and_the_number_of_workers_are_passed_on(checkout: Checkout) -> None:
    _, steps = checkout.up("--minimal", WORKERS="3")

    assert steps == [
        "project.sh",
        "doctor.sh --minimal",
        "secrets.sh",
        "images.sh",
        "certificates.sh",
        "passwords.sh",
        UP.format(" --minimal", 3),
        "urls.sh",
    ]


def test_official_images_are_not_built(checkout: Checkout) -> None:
    assert checkout.up(OFFICIAL="1")[1][3] == "official.sh"


def test_prebuilt_images_are_pulled_instead_of_built(checkout: Checkout) -> None:
    (checkout.folder / "compose/.env.override").write_text("PREBUILT=registry/owner\n")

    assert checkout.up()[1][3:5] == ["prebuilt.sh pull registry/owner", "certificates.sh"]


def test_the_provider_to_try_logins_with_is_built_too(checkout: Checkout) -> None:
    assert checkout.up(OIDC="keycloak")[1][3:5] == ["images.sh", "images.sh keycloak"]
    assert "images.sh keycloak" not in checkout.up(OIDC="1")[1][-7:]


def test_the_image_of_superset_is_built_for_dashboards_only(checkout: Checkout) -> None:
    assert checkout.up(BI="1")[1][3:5] == ["images.sh", "images.sh superset"]
    assert "images.sh superset" not in checkout.up()[1][-7:]


@pytest.mark.parametrize(
    "failing", ["doctor.sh", "secrets.sh", "images.sh", "certificates.sh", "passwords.sh", "stack.sh"]
)
def test_nothing_follows_a_step_that_fails(checkout: Checkout, failing: str) -> None:
    code, steps = checkout.up(FAILING=failing)

    assert code != 0
    assert steps[-1].split()[0] == failing
