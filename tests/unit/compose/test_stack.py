"""The compose files and env files of a command: the same for every command."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.programs import Outcome, add_program, run_alone
from tests.unit.compose.configured import copy_scripts

# Has no Grafana unless $GRAFANA is set, and prints the arguments of compose.
FAKE_DOCKER = """#!/bin/bash
case "$1" in
  compose) echo "$*" ;;
  image | pull) echo "$*" >>"$LOG"; [ -n "$GRAFANA" ] ;;
esac
"""
SMALL = ["compose.yaml"]
USUAL = [*SMALL, "compose.serving.yaml", "compose.observability.yaml", "compose.quality.yaml"]


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout and a fake Docker."""

    folder: Path

    def run(self, *arguments: str, **variables: str) -> Outcome:
        return run_alone((self.folder / "compose/stack.sh", *arguments), self.folder / "bin", LOG=self.log, **variables)

    def arguments(self, *arguments: str, **variables: str) -> tuple[list[str], list[str], list[str]]:
        """The arguments of compose: env files, compose files, the rest."""
        outcome = self.run(*arguments, **variables)
        assert outcome.returncode == 0, outcome.stderr
        words = outcome.stdout.split()[1:]
        pairs = list(zip(words[::2], words[1::2], strict=False))
        values = [value for option, value in pairs if option == "--env-file"]
        files = [value for option, value in pairs if option == "--file"]
        return values, files, words[2 * len(values + files) :]

    @property
    def log(self) -> Path:
        """The docker image commands."""
        return self.folder / "log"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """The scripts and values, in a folder of their own."""
    add_program(tmp_path / "bin" / "docker", FAKE_DOCKER)
    copy_scripts(tmp_path, "stack.sh", "read_env.sh", ".env")
    return Checkout(tmp_path)


def test_the_whole_stack_has_grafana_if_its_image_is_available(checkout: Checkout) -> None:
    assert checkout.arguments("ps", GRAFANA="yes") == ([".env"], [*USUAL, "compose.grafana.yaml"], ["ps"])


def test_without_a_container_registry_grafana_is_omitted_and_pulled_only_once(checkout: Checkout) -> None:
    assert checkout.arguments("ps") == ([".env"], USUAL, ["ps"])
    checkout.arguments("ps")

    assert sum(line.startswith("pull") for line in checkout.log.read_text().splitlines()) == 1


def test_the_minimal_stack_is_one_file_and_pulls_no_image(checkout: Checkout) -> None:
    assert checkout.arguments("--minimal", "up", "--detach") == ([".env"], SMALL, ["up", "--detach"])
    assert not checkout.log.exists()


def test_official_images_come_on_top_of_the_same_files(checkout: Checkout) -> None:
    on_top = ["compose.official.yaml", "compose.official.observability.yaml"]

    assert checkout.arguments("ps", OFFICIAL="1") == ([".env", ".env.official"], [*USUAL, *on_top], ["ps"])
    assert checkout.arguments("--minimal", "ps", OFFICIAL="1")[1] == [*SMALL, "compose.official.yaml"]


def test_env_override_may_choose_the_official_images_and_is_read_by_one_reader_alone(checkout: Checkout) -> None:
    (checkout.folder / "compose" / ".env.override").write_text("OFFICIAL=1\n")

    assert checkout.arguments("ps")[0] == [".env", ".env.official"]


def test_logins_at_a_provider_are_an_overlay_and_the_provider_to_try_them_another(checkout: Checkout) -> None:
    assert checkout.arguments("ps", OIDC="1")[1] == [*USUAL, "compose.oidc.yaml"]
    assert checkout.arguments("--minimal", "ps", OIDC="keycloak")[1] == [
        *SMALL,
        "compose.oidc.yaml",
        "compose.keycloak.yaml",
    ]
    official = checkout.arguments("--minimal", "ps", OIDC="1", OFFICIAL="1")[1]
    assert set(official) == {*SMALL, "compose.oidc.yaml", "compose.official.yaml"}


def test_dashboards_are_an_overlay(checkout: Checkout) -> None:
    assert checkout.arguments("--minimal", "ps", BI="1")[1] == [*SMALL, "compose.bi.yaml"]
    assert checkout.arguments("--minimal", "ps", BI="0")[1] == SMALL


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"OIDC": "yes"}, "OIDC is 'yes'"),
        ({"OIDC": "1", "TLS": "0"}, "OIDC needs TLS"),
        ({"BI": "superset"}, "BI is 'superset'"),
        ({"BI": "1", "TLS": "0"}, "BI needs TLS"),
    ],
)
def test_an_unknown_choice_or_one_that_needs_tls_is_refused(
    checkout: Checkout, variables: dict[str, str], problem: str
) -> None:
    outcome = checkout.run("ps", **variables)

    assert outcome.returncode == 1
    assert problem in outcome.stderr
