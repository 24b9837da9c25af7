"""The settings of the smoke test: the one place of its that reads the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from gamelake.kafka import KafkaAccess
from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.store import Location

CONTRACTS = Path(__file__).parents[2] / "contracts"
STREAM = "ingest_events"


@dataclass(frozen=True, slots=True)
class TrinoAddress:
    """Where Trino listens."""

    host: str
    port: int
    scheme: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeSettings:
    """Where an event is sent, and where it is looked for."""

    gateway: str
    keys_file: Path
    kafka: KafkaAccess
    topic: str
    lakehouse: Location
    stream: str
    trino: TrinoAddress
    contracts: Path

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            kafka=KafkaAccess.of(
                env.required("GAMELAKE_BOOTSTRAP_SERVERS"), env.optional("GAMELAKE_KAFKA_CREDENTIALS_FILE", "")
            ),
            topic=env.required("GAMELAKE_TOPIC"),
            gateway=env.required("GAMELAKE_GATEWAY_URL").rstrip("/"),
            keys_file=Path(env.required("INGEST_KEYS_FILE")),
            lakehouse=LakehouseSettings.from_env(variables).location,
            stream=env.optional("GAMELAKE_STREAM", STREAM),
            trino=_trino(env.required("GAMELAKE_TRINO_URL")),
            contracts=CONTRACTS,
        )


def _trino(url: str) -> TrinoAddress:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingsError(f"GAMELAKE_TRINO_URL is '{url}'; it must be like http://trino:8080")
    return TrinoAddress(parts.hostname, parts.port or (443 if parts.scheme == "https" else 80), parts.scheme)
