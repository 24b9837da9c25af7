"""What `docs/settings.md` says of the services is what they read, no more and no less."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from gamelake.model.errors import SettingsError
from services.agents.settings import AgentSettings
from services.alert_receiver.settings import ReceiverSettings
from services.audit.settings import AuditSettings
from services.catalog.settings import CatalogSettings
from services.delivery.settings import DeliverySettings
from services.gateway.settings import GatewaySettings
from services.portal.settings import PortalSettings
from services.provision.settings import COMPOSE, BucketsSettings, DatabasesSettings, SubjectsSettings, TopicsSettings
from tools.smoke.settings import SmokeSettings

_JOBS_PART, _PART = Path("docs/settings.md").read_text(encoding="utf-8").split("\n## Services\n")
_NAME = r"[A-Z][A-Z0-9]*_[A-Z0-9_]+"
_VARIABLE = re.compile(rf"`({_NAME})`")
# A default, and the range of a number: `2 (0.1..3600)`.
_DEFAULT = re.compile(r"(.*?)(?: \(([\d.]+?)\.\.([\d.]+)\))?")
_PREFIXES = {
    "ALERT_RECEIVER_": "alert receiver",
    "GAMELAKE_AGENTS_": "agents",
    "GAMELAKE_AUDIT_": "audit",
    "GAMELAKE_CATALOG_": "catalog",
    "GAMELAKE_DELIVERY_": "delivery",
    "INGEST_": "ingest",
    "PORTAL_": "portal",
    "PROVISION_": "provision",
}
# What a service reads through the library's own settings.
_LIBRARYS = {
    "GAMELAKE_REGISTRY_CREDENTIALS_FILE", "GAMELAKE_LAKEHOUSE", "GAMELAKE_S3_ENDPOINT", "GAMELAKE_S3_REGION",
    "GAMELAKE_BOOTSTRAP_SERVERS", "GAMELAKE_KAFKA_CA_FILE", "GAMELAKE_KAFKA_CREDENTIALS_FILE",
    "GAMELAKE_KAFKA_SASL_MECHANISM", "GAMELAKE_HEARTBEAT_FILE", "GAMELAKE_LANDING", "GAMELAKE_METRICS_CA_FILE",
    "GAMELAKE_METRICS_CERTIFICATE_FILE", "GAMELAKE_METRICS_HOST", "GAMELAKE_METRICS_PORT", "GAMELAKE_TRACE_ONE_IN",
    "GAMELAKE_VAULT", "GAMELAKE_VAULT_CREDENTIALS_FILE", "GAMELAKE_VAULT_KEYS_FILE",
}  # fmt: skip


@dataclass(frozen=True)
class Own:
    """A variable that only services read, as the page has it."""

    name: str
    services: tuple[str, ...]
    default: str
    least: str
    most: str


def _rows(columns: int) -> list[list[str]]:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in _PART.splitlines() if line.startswith("| ")
    ]
    return [row for row in rows if len(row) == columns and row[0] not in ("---", "service", "variable")]


def _own(name: str, meaning: str, cell: str) -> Own:
    """A row's variable; its services are those that the meaning begins with, or the one in the name."""
    named = _SERVICES.match(meaning)
    services = named[1].split(", ") if named else [own for prefix, own in _PREFIXES.items() if name.startswith(prefix)]
    default, least, most = _DEFAULT.fullmatch(cell).groups("")  # type: ignore[union-attr]  # it matches any text
    return Own(name, tuple(services), default.strip("`"), least, most)


_ROWS = _rows(3)
_SHARED = {
    service: (Path(code.strip("`")), set(_VARIABLE.findall(reads)))
    for service, code, reads in _ROWS
    if not _VARIABLE.fullmatch(service)
}
_SERVICES = re.compile(rf"((?:{'|'.join(_SHARED)})(?:, (?:{'|'.join(_SHARED)}))*): ")
_OWN = [_own(name.strip("`"), meaning, cell) for name, meaning, cell in _ROWS if _VARIABLE.fullmatch(name)]
_NUMBERS = [own for own in _OWN if own.least]


def test_every_service_with_settings_is_on_the_page() -> None:
    with_settings = {path.parent for root in ("services", "tools") for path in Path(root).glob("*/settings.py")}

    assert {code for code, _ in _SHARED.values()} == with_settings


@pytest.mark.parametrize("service", _SHARED)
def test_every_variable_that_a_service_reads_has_its_row_and_the_reverse(service: str) -> None:
    folder, shared = _SHARED[service]
    read = re.findall(rf'"({_NAME})"', (folder / "settings.py").read_text())
    own = {each.name for each in _OWN if service in each.services}

    assert shared - _LIBRARYS | own == set(read) - _LIBRARYS
    assert shared <= set(_VARIABLE.findall(_JOBS_PART)), "not a variable of the jobs"


@pytest.fixture
def required(tmp_path: Path) -> dict[str, str]:
    """What no service starts without; the values are as good as any."""
    (tmp_path / "kafka-admin").write_text("username=admin\npassword=0123456789abcdef\n")
    (tmp_path / "postgres-password").write_text("0123456789abcdef")
    return {
        "GAMELAKE_LAKEHOUSE": "s3://lakehouse",
        "GAMELAKE_S3_ENDPOINT": "http://object-store:9000",
        "GAMELAKE_BOOTSTRAP_SERVERS": "kafka:9092",
        "GAMELAKE_TOPIC": "events",
        "GAMELAKE_REGISTRY_URL": "http://registry:8080/apis/ccompat/v7",
        "GAMELAKE_TRINO_URL": "http://trino:8080",
        "GAMELAKE_GATEWAY_URL": "http://ingest:8000",
        "PROVISION_SECRETS": str(tmp_path),
        "ALERT_RECEIVER_FILE": "/var/lib/alerts/alerts.jsonl",
        "INGEST_KEYS_FILE": "/run/secrets/ingest-keys",
        "GAMELAKE_VAULT": "/var/lib/vault/vault.db",
        "GAMELAKE_VAULT_KEYS_FILE": "/run/secrets/vault-keys",
        "GAMELAKE_LANDING": "s3://landing",
        "GAMELAKE_GAMES_FILE": "contracts/games.yaml",
    }


_READERS: dict[str, tuple[Callable[[Mapping[str, str]], object], ...]] = {
    "catalog": (CatalogSettings.from_env,),
    "delivery": (DeliverySettings.from_env,),
    "audit": (AuditSettings.from_env,),
    "smoke": (SmokeSettings.from_env,),
    "provision": (
        TopicsSettings.from_env,
        BucketsSettings.from_env,
        DatabasesSettings.from_env,
        SubjectsSettings.from_env,
    ),
    "alert receiver": (ReceiverSettings.from_env,),
    "ingest": (GatewaySettings.from_env,),
    "portal": (PortalSettings.from_env,),
    "agents": (AgentSettings.from_env,),
}


@pytest.mark.parametrize("number", _NUMBERS, ids=lambda own: own.name)
def test_a_numbers_bounds_are_the_pages(number: Own, required: dict[str, str]) -> None:
    for read in (read for service in number.services for read in _READERS[service]):
        for allowed in (number.least, number.most):
            read(required | {number.name: allowed})
        for beyond in (float(number.least) - 1, float(number.most) + 1):
            with pytest.raises(SettingsError, match=number.name):
                read(required | {number.name: f"{beyond:.15g}"})


@pytest.mark.parametrize("own", [own for own in _OWN if own.default != "required"], ids=lambda own: own.name)
def test_a_default_is_the_pages(own: Own, required: dict[str, str]) -> None:
    given = {name: value for name, value in required.items() if name != own.name}
    default = str(COMPOSE.parent / own.default) if own.default.startswith("compose/") else own.default
    if own.name == "PROVISION_SECRETS":
        # Without the secrets of a running container only this one of the three can be read.
        assert BucketsSettings.from_env(given) == BucketsSettings.from_env(given | {own.name: default})
        return
    for read in (read for service in own.services for read in _READERS[service]):
        assert read(given) == read(given | {own.name: default})


@pytest.mark.parametrize("own", [own for own in _OWN if own.default == "required"], ids=lambda own: own.name)
def test_what_is_required_is_asked_for_by_name(own: Own, required: dict[str, str]) -> None:
    del required[own.name]

    for read in (read for service in own.services for read in _READERS[service]):
        with pytest.raises(SettingsError, match=own.name):
            read(required)


def test_the_catalogs_port_is_the_pages(required: dict[str, str]) -> None:
    assert CatalogSettings.from_env(required) == CatalogSettings.from_env(required | {"GAMELAKE_METRICS_PORT": "9109"})
    assert "`GAMELAKE_METRICS_PORT` (9109 if not set)" in _PART
