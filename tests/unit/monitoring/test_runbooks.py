"""A runbook for each alert, in four parts, with commands that exist."""

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.unit.monitoring.rules import MONITORING, REPOSITORY, alerts
from tools.cli.jobs import COMMANDS

RUNBOOKS = sorted((MONITORING / "runbooks").glob("*.md"))
EVERY_RUNBOOK = [pytest.param(path, id=path.stem) for path in RUNBOOKS]
HEADINGS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]

TARGETS = set(re.findall(r"^([a-z][a-z-]*):(?!=)", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
SERVICES = {
    name
    for file in ("compose.yaml", "compose.serving.yaml", "compose.observability.yaml")
    for name in yaml.safe_load((REPOSITORY / "compose" / file).read_text())["services"]
}
# Commands of docker compose: some are followed by names of services only, others by one name and its command.
ON_SERVICES = {"ps", "logs", "start", "stop", "restart", "up"}
IN_ONE_SERVICE = {"exec", "run"}
WITH_A_VALUE = {"--tail"}
PROGRAMS = {"curl", "docker"}
TRINO_USERS = {user["name"] for user in yaml.safe_load((REPOSITORY / "contracts/access.yaml").read_text())["users"]}
# What a clean checkout has not: the script of the secrets says which files it makes.
_KEY_FILES = re.search(r'^readonly key_files="(.+)"$', (REPOSITORY / "compose/secrets.sh").read_text(), re.MULTILINE)
MADE = {f"compose/secrets/{name}" for name in _KEY_FILES[1].split()} if _KEY_FILES else set()

_FENCE = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MODULE = re.compile(r"\b(?:python -m )?((?:jobs|services|tools)\.[a-z_]+)")
_FILE = re.compile(r"`((?:compose|contracts|monitoring|docs)/[\w./-]+)`")


def commands(runbook: Path) -> list[list[str]]:
    """The commands of a runbook, split into words."""
    fences = _FENCE.findall(runbook.read_text(encoding="utf-8"))
    return [shlex.split(line) for fence in fences for line in fence.splitlines() if line]


def services_named(words: list[str]) -> Iterator[str]:
    """The services that a command of the stack is about."""
    verb, *rest = words
    names = []
    value_follows = False
    for word in rest:
        if not value_follows and not word.startswith("-"):
            names.append(word)
        value_follows = word in WITH_A_VALUE
    yield from names[:1] if verb in IN_ONE_SERVICE else names


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert {path.stem for path in RUNBOOKS} == {alert.name for alert in alerts()}


@pytest.mark.parametrize("runbook", EVERY_RUNBOOK)
def test_a_runbook_has_its_alerts_name_and_four_parts_that_are_not_empty(runbook: Path) -> None:
    text = runbook.read_text(encoding="utf-8")
    parts = re.split(r"^## .+$", text, flags=re.MULTILINE)

    assert text.startswith(f"# {runbook.stem}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS
    assert all(len(part.split()) > 5 for part in parts[1:])


@pytest.mark.parametrize("runbook", EVERY_RUNBOOK)
def test_a_runbook_has_commands_for_diagnosis_and_mitigation(runbook: Path) -> None:
    diagnosis, mitigation = re.split(r"^## Mitigation$", runbook.read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert _FENCE.search(diagnosis)
    # The team of a silent game must fix it, so there is no command.
    assert _FENCE.search(mitigation) or runbook.stem == "GameSilent"


@pytest.mark.parametrize("runbook", EVERY_RUNBOOK)
def test_every_command_of_a_runbook_exists(runbook: Path) -> None:
    for program, *rest in commands(runbook):
        if program == "make":
            assert rest[0] in TARGETS, rest
        elif program == "compose/stack.sh":
            assert rest[0] in ON_SERVICES | IN_ONE_SERVICE, rest
            assert set(services_named(rest)) <= SERVICES, rest
        elif program == "compose/sql.sh":
            assert rest[0] in TRINO_USERS, rest
        elif program == "compose/promql.sh":
            assert len(rest) == 1, rest
        elif program == "gamelake":
            assert rest[0] in COMMANDS, rest
        else:
            assert program in PROGRAMS, program


@pytest.mark.parametrize("runbook", EVERY_RUNBOOK)
def test_the_programs_and_files_that_a_runbook_names_exist(runbook: Path) -> None:
    text = runbook.read_text(encoding="utf-8")

    assert [name for name in _MODULE.findall(text) if find_spec(name) is None] == []
    names = set(_FILE.findall(text)) - {"compose/.env.override"}  # a person's own, see compose/.env
    assert [name for name in names if not (REPOSITORY / name).exists() and name not in MADE] == []


def test_no_document_leads_to_pages_that_debians_prometheus_does_not_have() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (*RUNBOOKS, *REPOSITORY.glob("docs/**/*.md"))]

    assert [text for text in texts if re.search(r":9090/(?:alerts|consoles|targets|rules|status)\b", text)] == []


@pytest.mark.parametrize("runbook", EVERY_RUNBOOK)
def test_a_runbook_reaches_services_that_use_tls_by_https(runbook: Path) -> None:
    # All published ports but that of Kafka, which is not HTTP.
    found = re.findall(
        r"http://127\.0\.0\.1:(?:3000|4040|8000|8080|8081|8090|9000|9001|9090|9093|18080)\b",
        runbook.read_text(encoding="utf-8"),
    )

    assert found == []
