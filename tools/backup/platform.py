"""Platforms to back up: the running stack, the demo's directory, or what the environment names."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gamelake.kafka import kafka_access
from gamelake.model.environment import Environment
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Location
from gamelake.schemas.event_schemas import registry_writer
from tools import stack
from tools.backup.parts import RegistryPart, StackVaultPart, TopicsPart, VaultPart
from tools.demo.options import DemoPaths
from tools.embedded import EmbeddedRegistry
from tools.embedded.service import REPOSITORY

_DEMO = REPOSITORY / "build" / "demo"


class BackupPart(Protocol):
    """A part besides the lakehouse; it is saved as one file."""

    name: str
    file: str

    def save(self, folder: Path) -> None:
        """Write the part's file into a folder."""

    def is_empty(self) -> bool:
        """Return True if the part can be restored without the permission `--into`."""

    def restore(self, folder: Path) -> str:
        """Restore from the file in a folder. Return a text that names the restored things."""


@dataclass(frozen=True, slots=True)
class BackupPlatform:
    """A lakehouse and the parts besides it; `left_out` has unavailable parts with the reason."""

    lakehouse: Location
    parts: tuple[BackupPart, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


def of_the_stack() -> BackupPlatform:
    """Return the running stack, with its root keys."""
    parts = (
        TopicsPart(stack.kafka("admin")),
        RegistryPart(stack.registry_url(), stack.registry_writer()),
        StackVaultPart(),
    )
    return BackupPlatform(stack.lakehouse("root"), parts)


@contextmanager
def of_the_demo() -> Iterator[BackupPlatform]:
    """Start the registry of the demo's directory for as long as the block lasts."""
    places = DemoPaths.under(_DEMO)
    with EmbeddedRegistry(_DEMO / "registry") as registry:
        vault = {
            **os.environ,
            "GAMELAKE_LAKEHOUSE": places.lakehouse.uri,
            "GAMELAKE_VAULT": str(places.vault),
            "GAMELAKE_VAULT_KEYS_FILE": str(places.gateway / "vault-keys.yaml"),
        }
        parts: tuple[BackupPart, ...] = (RegistryPart(registry.url),)
        left_out = {"topics": "the demo creates its own"}
        if places.vault.exists():
            parts = (*parts, VaultPart(vault))
        else:
            left_out["vault"] = "the demo has none"
        yield BackupPlatform(places.lakehouse, parts, left_out)


def of_the_environment(variables: Mapping[str, str] = os.environ) -> BackupPlatform:
    """Return the platform that GAMELAKE_* variables name; parts without a variable are left out.

    Raises:
        SettingsError: GAMELAKE_LAKEHOUSE is not set, or a variable is malformed.
    """
    env = Environment(variables)
    left_out: dict[str, str] = {}
    parts: list[BackupPart] = []
    if env.optional("GAMELAKE_BOOTSTRAP_SERVERS", ""):
        parts.append(TopicsPart(kafka_access(env)))
    else:
        left_out["topics"] = "GAMELAKE_BOOTSTRAP_SERVERS is not set"
    if url := env.optional("GAMELAKE_REGISTRY_URL", ""):
        parts.append(RegistryPart(url, registry_writer(env)))
    else:
        left_out["registry"] = "GAMELAKE_REGISTRY_URL is not set"
    if env.optional("GAMELAKE_VAULT", ""):
        parts.append(VaultPart({**variables, "PYTHONPATH": os.pathsep.join(sys.path)}))
    else:
        left_out["vault"] = "GAMELAKE_VAULT is not set"
    return BackupPlatform(LakehouseSettings.from_env(variables).location, tuple(parts), left_out)
