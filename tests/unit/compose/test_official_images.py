"""What `OFFICIAL=1` changes: images and their volumes, and nothing else."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tests.unit.compose.configured import COMPOSE, OWN_MIXES, Service, has_compose, official, services

# All that is Python stays ours.
SWAPPED = {"kafka", "registry", "postgres", "object-store", "trino", "prometheus", "alertmanager", "node-exporter"}
# What makes our configuration readable to an image that is not ours.
BRIDGES = re.compile(r"/entrypoint\.sh$|/jmx_prometheus_javaagent\.jar$")
IMAGES = dict(
    line.split("=", 1) for line in (COMPOSE / ".env.official").read_text().splitlines() if line.startswith("OFFICIAL_")
)

Pairs = dict[str, tuple[Service, Service]]


@pytest.fixture(params=OWN_MIXES, ids=" + ".join)
def pairs(request: pytest.FixtureRequest, missing_service: Callable[[str], NoReturn]) -> Pairs:
    """Each service with our image, paired with itself with the official one."""
    if not has_compose():
        missing_service("docker compose is not installed")
    own = {service.name: service for service in services(request.param)}
    theirs = {service.name: service for service in services(official(request.param))}
    assert theirs.keys() - own.keys() == {"own-volume"}
    return {name: (own[name], theirs[name]) for name in own}


def test_every_image_with_an_official_counterpart_is_replaced(pairs: Pairs) -> None:
    swapped = {name for name, (own, theirs) in pairs.items() if own.image != theirs.image}

    assert swapped == SWAPPED & pairs.keys()
    assert all(pairs[name][1].image in IMAGES.values() for name in swapped)


def test_limits_ports_secrets_and_configuration_stay(pairs: Pairs) -> None:
    for own, theirs in pairs.values():
        assert theirs.memory_mib == own.memory_mib
        assert theirs.heap_mib == own.heap_mib
        assert theirs.ports == own.ports
        assert theirs.secrets == own.secrets
        assert own.mounts <= theirs.mounts
        assert all(BRIDGES.search(source) for source, _ in theirs.mounts - own.mounts)
        assert theirs.waits_for.items() - own.waits_for.items() <= {("own-volume", "service_completed_successfully")}


def test_official_images_get_the_same_commands_and_variables(pairs: Pairs) -> None:
    changed = {
        (name, variable)
        for name, (own, theirs) in pairs.items()
        for variable, value in own.environment.items()
        if theirs.environment.get(variable) != value
    }

    assert changed == {("kafka", "KAFKA_HEAP_OPTS")}


def test_a_service_with_an_official_image_has_its_own_volume(pairs: Pairs) -> None:
    """Its user id differs from ours, so it could neither read nor write our data."""
    for name, (own, theirs) in pairs.items():
        if name in SWAPPED:
            assert theirs.data == {(f"official-{source}", target) for source, target in own.data}
        else:
            assert theirs.data == own.data


def test_the_engine_adds_an_init_where_our_image_has_one(pairs: Pairs) -> None:
    with_our_entrypoint = [
        theirs for _, theirs in pairs.values() if (theirs.raw.get("entrypoint") or [""])[0] == "bash"
    ]

    assert {service.name for service in with_our_entrypoint} == {
        "postgres",
        "kafka",
        "registry",
        "object-store",
        "trino",
    }
    assert all(service.raw.get("init") is True for service in with_our_entrypoint)


@pytest.mark.parametrize(
    ("image", "pom", "stated"),
    [
        ("OFFICIAL_KAFKA_IMAGE", "kafka", "kafka.version"),
        ("OFFICIAL_REGISTRY_IMAGE", "registry", "apicurio.version"),
        ("OFFICIAL_TRINO_IMAGE", "trino", "trino.version"),
    ],
)
def test_a_version_is_the_one_that_our_image_is_built_from(image: str, pom: str, stated: str) -> None:
    text = Path(COMPOSE / pom / "pom.xml").read_text()
    version = re.search(rf"<{stated}>(.+)</{stated}>", text)

    assert version
    assert IMAGES[image].endswith(f":{version[1]}")
