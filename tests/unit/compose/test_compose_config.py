"""Rules for every service of the stack, in every combination of overlays."""

import re
from collections.abc import Callable
from typing import NoReturn

import pytest
import yaml

from tests.unit.compose.configured import (
    BI_MIXES,
    COMPOSE,
    CORE,
    KEYCLOAK,
    MIXES,
    OIDC,
    PROVIDER_MIXES,
    Service,
    has_compose,
    services,
)

LARGEST_HEAP = 0.75
# A check that starts a JVM each time takes the memory that it is to watch over, and can end a small broker.
STARTS_A_JVM = re.compile(r"\bjava\b|kafka-[a-z-]+\.sh|kafka\.tools|\btrino\b(?!:)|spark-(class|submit|shell|sql)")
SECRET_NAME = re.compile(r"PASSWORD|SECRET|TOKEN|ACCESS_KEY|CREDENTIAL|PRIVATE", re.IGNORECASE)
# Images that are not ours and state no user in their compose file, with why they are let in.
OTHERS_USERS = {
    "grafana/grafana": "runs as user 472",
    "apache/kafka": "runs as its user appuser",
    "apicurio/apicurio-registry": "runs as user 1001",
    "trinodb/trino": "runs as its user trino, 1000",
    "prom/prometheus": "runs as nobody",
    "prom/alertmanager": "runs as nobody",
    "prom/node-exporter": "runs as nobody",
}
# Images that are not ours and write to more than volumes and /tmp.
OTHERS_THAT_WRITE = {"apache/kafka", "apicurio/apicurio-registry", "postgres", "quay.io/minio/minio", "trinodb/trino"}


@pytest.fixture(params=(*MIXES, *PROVIDER_MIXES, *BI_MIXES), ids=" + ".join)
def mix(request: pytest.FixtureRequest, missing_service: Callable[[str], NoReturn]) -> tuple[Service, ...]:
    if not has_compose():
        missing_service("docker compose is not installed")
    return services(request.param)


def names_of(those: list[Service]) -> list[str]:
    return [service.name for service in those]


def volumes_of_image(name: str) -> list[str]:
    """The paths that the Dockerfile of an image of ours declares as volumes."""
    dockerfile = COMPOSE / name / "Dockerfile"
    lines = dockerfile.read_text().splitlines() if dockerfile.exists() else []
    return [path for line in lines if line.startswith("VOLUME ") for path in line.split()[1:]]


def test_a_long_running_service_depends_on_every_one_shot(mix: tuple[Service, ...]) -> None:
    """Without one, `up --wait` treats its end as a failure."""
    adopted = {
        name
        for service in mix
        if service.runs_on
        for name, condition in service.waits_for.items()
        if condition == "service_completed_successfully"
    }

    assert {service.name for service in mix if service.is_one_shot} - adopted == set()


def test_services_depend_on_health_or_success_and_never_on_a_mere_start(mix: tuple[Service, ...]) -> None:
    conditions = {condition for service in mix if service.runs_on for condition in service.waits_for.values()}

    assert conditions <= {"service_healthy", "service_completed_successfully"}


def test_one_shots_poll_their_service_themselves(mix: tuple[Service, ...]) -> None:
    """They retry, and a health check would be seconds late."""
    conditions = {condition for service in mix if service.is_one_shot for condition in service.waits_for.values()}

    assert conditions == {"service_started"}


def test_a_service_with_an_address_starts_after_the_service_at_that_address(mix: tuple[Service, ...]) -> None:
    by_name = {service.name: service for service in mix}
    too_early = [
        (service.name, name)
        for service in mix
        if service.is_started_by_up
        for name in by_name.keys() - {service.name}
        if any(re.search(rf"\b{name}:\d", value) for value in service.environment.values())
        and name not in all_before(service, by_name)
    ]

    assert too_early == []


def all_before(service: Service, by_name: dict[str, Service]) -> set[str]:
    """Its dependencies, and theirs."""
    before = set(service.waits_for)
    return before.union(*(all_before(by_name[name], by_name) for name in before))


def test_every_service_has_a_memory_limit(mix: tuple[Service, ...]) -> None:
    assert names_of([service for service in mix if not service.memory_mib]) == []


def test_every_long_running_service_has_a_health_check(mix: tuple[Service, ...]) -> None:
    assert names_of([service for service in mix if service.runs_on and not service.health_check]) == []


def test_a_service_that_stays_unhealthy_is_ended_and_restarted(mix: tuple[Service, ...]) -> None:
    checked = [service for service in mix if service.runs_on]

    assert names_of([service for service in checked if not service.health_check.startswith("CMD healthcheck ")]) == []
    assert names_of([service for service in checked if service.raw.get("restart") != "unless-stopped"]) == []
    assert names_of([service for service in checked if not service.raw.get("configs")]) == []


def test_a_health_check_asks_at_the_name_that_other_services_use(mix: tuple[Service, ...]) -> None:
    """After its network was cut, a service may still answer itself, but no other."""
    asked = {service.name: service.health_check for service in mix if service.runs_on}
    local = {name for name, check in asked.items() if re.search(r"127\.0\.0\.1|localhost", check)}

    # Its own name is the one that browsers on this machine use.
    assert local <= {"keycloak"}
    works = {name for name, check in asked.items() if "heartbeat" in check}
    assert [
        name for name in asked.keys() - works - local if name not in asked[name] and "spark-health" not in asked[name]
    ] == []


def test_no_health_check_starts_a_jvm(mix: tuple[Service, ...]) -> None:
    assert names_of([service for service in mix if STARTS_A_JVM.search(service.health_check)]) == []


def test_every_image_is_pinned(mix: tuple[Service, ...]) -> None:
    pinned = re.compile(r"^[\w./-]+(:(?!latest)[\w.-]*\d[\w.-]*)?(@sha256:[0-9a-f]{64})?$")
    loose = [s for s in mix if not pinned.match(s.image) or not re.search(r":[\w.-]*\d|@sha256", s.image)]

    assert names_of(loose) == []


def test_every_port_is_bound_to_this_machine_only(mix: tuple[Service, ...]) -> None:
    assert {address for service in mix for address, _, _ in service.ports} == {"127.0.0.1"}


def test_every_container_has_no_capabilities_and_can_get_none(mix: tuple[Service, ...]) -> None:
    lax = [
        service
        for service in mix
        if service.raw.get("cap_drop") != ["ALL"]
        or service.raw.get("security_opt") != ["no-new-privileges:true"]
        or service.raw.get("privileged")
        or service.raw.get("cap_add")
    ]

    assert names_of(lax) == []


def test_every_container_has_a_read_only_root_filesystem_and_a_limit_of_processes(mix: tuple[Service, ...]) -> None:
    writable = [service for service in mix if not service.raw.get("read_only")]

    assert {service.image.partition(":")[0].partition("@")[0] for service in writable} <= OTHERS_THAT_WRITE
    assert names_of([service for service in mix if not 0 < int(service.raw.get("pids_limit") or 0) <= 1024]) == []


def test_temporary_files_are_in_memory_with_a_limit_or_removed_with_the_container(mix: tuple[Service, ...]) -> None:
    unbounded = [
        service
        for service in mix
        if not any(tmpfs.startswith("/tmp:") and "size=" in tmpfs for tmpfs in service.raw.get("tmpfs") or [])  # noqa: S108
    ]

    assert set(names_of(unbounded)) <= {"maintenance", "own-volume"}
    # `up` would leave an anonymous volume behind with each start.
    assert names_of([service for service in unbounded if service.runs_on]) == []


def test_each_volume_of_an_image_of_ours_is_a_named_one(mix: tuple[Service, ...]) -> None:
    # Each start would leave an anonymous volume behind.
    anonymous = [
        (service.name, path)
        for service in mix
        if service.is_started_by_up and service.image.startswith("gamelake/")
        for path in volumes_of_image(service.image.removeprefix("gamelake/").partition(":")[0])
        if path not in {target for _, target in service.data}
    ]

    assert anonymous == []


def test_nothing_runs_as_root(mix: tuple[Service, ...]) -> None:
    assert names_of([service for service in mix if user_of(service) in {"", "0", "root", "0:0", "root:root"}]) == []


def user_of(service: Service) -> str:
    """The user of a service: from compose, or else the last USER of the image's Dockerfile; empty for root."""
    stated = str(service.raw.get("user") or "")
    image = service.image.partition("@")[0].rpartition(":")[0]
    dockerfile = COMPOSE / image.removeprefix("gamelake/") / "Dockerfile"
    if stated or not image.startswith("gamelake/"):
        return stated or OTHERS_USERS.get(image, "")
    users = re.findall(r"^USER (\S+)", dockerfile.read_text(), re.MULTILINE) if dockerfile.exists() else []
    return str(users[-1]) if users else ""


def test_no_variable_holds_a_secret(mix: tuple[Service, ...]) -> None:
    """A variable is shown by `docker inspect`; one that names a secret's file is fine."""
    held = [
        (service.name, name)
        for service in mix
        for name, value in service.environment.items()
        if SECRET_NAME.search(name) and not value.startswith("/run/secrets/")
    ]

    assert held == []


def test_the_provider_to_try_logins_with_has_the_passwords_of_people_and_of_no_service(
    missing_service: Callable[[str], NoReturn],
) -> None:
    if not has_compose():
        missing_service("docker compose is not installed")
    (provider,) = (service for service in services((CORE, OIDC, KEYCLOAK)) if service.name == "keycloak")
    people = (COMPOSE / "trino/etc/people").read_text().strip().split("|")

    assert {name for name in provider.secrets if name.startswith("trino-")} == {f"trino-{name}" for name in people}


def test_every_heap_is_set_and_leaves_memory_below_its_limit(mix: tuple[Service, ...]) -> None:
    java = [service for service in mix if service.runs_java]

    assert len(java) >= 5
    assert names_of([service for service in java if not service.heap_mib]) == []
    assert names_of([service for service in java if service.heap_mib > LARGEST_HEAP * service.memory_mib]) == []


def test_services_log_for_machines_and_what_an_operator_starts_logs_for_people() -> None:
    started = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["services"]
    formats = {name: raw.get("environment", {}).get("GAMELAKE_LOG_FORMAT") for name, raw in started.items()}

    assert {name for name, raw in started.items() if raw.get("profiles") == ["tools"]} == {
        "tools",
        "privacy",
        "maintenance",
    }
    assert {name for name, log_format in formats.items() if log_format == "text"} == {"tools", "privacy", "maintenance"}
    assert "GAMELAKE_LOG_FORMAT=json" in (COMPOSE / "spark" / "Dockerfile").read_text()
