"""`docs/stack.md` and the README agree with the compose files: services, ports, memory, secrets."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tests.unit.compose.configured import (
    BI,
    CORE,
    GRAFANA,
    KEYCLOAK,
    MIXES,
    OBSERVABILITY,
    OIDC,
    SERVING,
    Service,
    has_compose,
    official,
    services,
)

PAGE = Path("docs/stack.md").read_text(encoding="utf-8")
README = Path("README.md").read_text(encoding="utf-8")
EVERYTHING = (CORE, SERVING, OBSERVABILITY, GRAFANA)
PROVIDER = (OIDC, KEYCLOAK)
DASHBOARDS = (BI,)
GIB = 1024
# These one-shots have the secrets of all users they create; the page says so once.
PROVISIONED = {"kafka-": "create-topics", "object-store-": "create-buckets", "postgres-": "create-databases"}
NOT_PROVISIONED = {"kafka-metrics", "object-store-metrics-token"}
# The authority's certificate is public: every container may have it.
AUTHORITY = {"tls-ca", "tls-ca-java"}
MOST_OF_ALL, MOST_OF_MINIMAL = 10 * GIB + 160, 7 * GIB


@pytest.fixture(autouse=True)
def _compose(missing_service: Callable[[str], NoReturn]) -> None:
    if not has_compose():
        missing_service("docker compose is not installed")


def table(heading: str) -> dict[str, list[str]]:
    """The rows of a section's first table, by the name in their first cell."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")
    ]
    return {row[0].strip("`"): row[1:] for row in rows if row[0].startswith("`")}


def total(those: tuple[Service, ...]) -> float:
    return sum(service.memory_mib for service in those if service.runs_on)


def test_every_service_has_its_row_with_its_limit_and_its_ports() -> None:
    rows = table("Services, ports and memory limits")
    staying = {service.name: service for service in services(EVERYTHING) if service.runs_on}

    assert rows.keys() == staying.keys()
    for name, (_, ports, limit) in rows.items():
        assert int(limit.replace(",", "")) == staying[name].memory_mib
        assert set(re.findall(r"\d+", ports)) == {port for _, port, _ in staying[name].ports}


def test_the_sums_are_the_ones_that_both_pages_state() -> None:
    for text in (PAGE, README):
        assert f"{total(services(EVERYTHING)):,.0f} MiB" in text
        assert f"{total(services((CORE,))):,.0f} MiB" in text
    (worker,) = (service for service in services((CORE,)) if service.name == "spark-worker")
    assert f"each further worker takes {worker.memory_mib:,.0f}" in PAGE


@pytest.mark.parametrize("mix", MIXES, ids=" + ".join)
def test_a_mix_fits_into_what_is_promised(mix: tuple[str, ...]) -> None:
    most = MOST_OF_MINIMAL if OBSERVABILITY not in mix else MOST_OF_ALL

    assert 0 < total(services(mix)) <= most


@pytest.mark.parametrize("mix", MIXES, ids=" + ".join)
def test_the_sum_excludes_one_shots_because_their_dependents_need_more(mix: tuple[str, ...]) -> None:
    those = services(mix)
    one_shots = {service.name for service in those if service.is_one_shot}
    waiting = [service for service in those if service.runs_on and service.waits_for.keys() & one_shots]

    assert sum(s.memory_mib for s in those if s.is_one_shot) <= sum(s.memory_mib for s in waiting)


def test_what_runs_for_a_command_is_named_with_its_limit() -> None:
    for_a_command = [service for service in services(EVERYTHING) if not service.is_started_by_up]

    assert {service.name for service in for_a_command} == {"maintenance", "privacy", "tools"}
    for service in for_a_command:
        assert f"`{service.name}`, {service.memory_mib:,.0f} MiB" in PAGE


def test_the_provider_to_try_logins_with_is_named_with_its_limit_and_port() -> None:
    (provider,) = (service for service in services((*EVERYTHING, *PROVIDER)) if service.name == "keycloak")

    assert f"Keycloak ({provider.memory_mib:,.0f} MiB, port {next(iter(provider.ports))[1]})" in PAGE


def test_superset_is_named_with_its_limit_and_port() -> None:
    (superset,) = (service for service in services((*EVERYTHING, *DASHBOARDS)) if service.name == "superset")

    limit, port = f"{superset.memory_mib:,.0f} MiB", next(iter(superset.ports))[1]
    assert f"Superset ({limit}, port {port})" in PAGE
    assert limit in Path("docs/dashboards.md").read_text(encoding="utf-8")


def test_the_settings_of_logins_at_a_provider_are_those_of_the_page_and_reach_trino() -> None:
    page = Path("docs/logins.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(OIDC\w*)` \|.*\| ([^|]+) \|$", page, re.MULTILINE))
    lines = Path("compose/.env").read_text(encoding="utf-8").splitlines()
    defaults = dict(line.split("=", 1) for line in lines if line.startswith("OIDC"))
    (trino,) = (service for service in services((CORE, *PROVIDER)) if service.name == "trino")

    assert listed.keys() == {*defaults, "OIDC_ISSUER"}
    plain = {name: text.strip("`") for name, text in listed.items() if name not in {"OIDC_ISSUER", "OIDC_CA_FILE"}}
    assert plain == {name: defaults[name] or "empty" for name in plain}
    assert {name for name in trino.environment if name.startswith("OIDC")} == listed.keys() - {"OIDC", "OIDC_CA_FILE"}


@pytest.mark.parametrize("mix", [EVERYTHING, official(EVERYTHING)], ids=["own", "official"])
def test_a_secret_is_mounted_where_the_page_says_and_nowhere_else(mix: tuple[str, ...]) -> None:
    listed = {name: set(re.findall(r"`([a-z-]+)`", row[0])) for name, row in table("Secrets and permissions").items()}
    for prefix, one_shot in PROVISIONED.items():
        for name in listed.keys() - NOT_PROVISIONED:
            if name.startswith(prefix):
                listed[name].add(one_shot)
    mounted: dict[str, set[str]] = {}
    for service in services((*mix, *PROVIDER, *DASHBOARDS)):
        for secret in set(service.secrets) - AUTHORITY:
            mounted.setdefault(secret, set()).add(service.name)

    # The page says of the others that a service has its own certificate alone, and Keycloak the passwords of people.
    certificates = {
        name: {name.removeprefix("tls-")} for name in mounted.keys() - listed.keys() if name.startswith("tls-")
    }
    passwords = {name: {"keycloak"} for name in mounted.keys() - listed.keys() if name.startswith("trino-")}
    assert mounted == listed | certificates | passwords
