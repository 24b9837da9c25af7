"""The settings of the notebooks, from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.store import Location

REPOSITORY = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class TrinoConnection:
    """Address of Trino, and the user."""

    host: str
    port: int
    scheme: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookSettings:
    """The lakehouse, and the Trino that runs queries; without it, DuckDB runs them in this process."""

    lakehouse: Location | None
    trino: TrinoConnection | None
    spark_jars: Path | None

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: neither a lakehouse nor a Trino is named, or a variable is malformed.
        """
        env = Environment(variables)
        lakehouse, url = env.optional("GAMELAKE_LAKEHOUSE", ""), env.optional("GAMELAKE_TRINO_URL", "")
        if not lakehouse and not url:
            raise SettingsError("neither GAMELAKE_LAKEHOUSE nor GAMELAKE_TRINO_URL is set; docs/notebooks.md")
        jars = env.optional("GAMELAKE_SPARK_JARS", "")
        return cls(
            lakehouse=LakehouseSettings.from_env(variables).location if lakehouse else None,
            trino=_trino(url, env.optional("GAMELAKE_TRINO_USER", "analyst")) if url else None,
            spark_jars=Path(jars) if jars else None,
        )


def _trino(url: str, user: str) -> TrinoConnection:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingsError(f"GAMELAKE_TRINO_URL is '{url}'; it must be like http://127.0.0.1:8080")
    return TrinoConnection(parts.hostname, parts.port or (443 if parts.scheme == "https" else 80), parts.scheme, user)
