"""The settings of the catalog service, from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError
from gamelake.model.options import EndpointTls, endpoint_tls
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.store import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class TrinoSettings:
    """Address of Trino, and the user that registers tables."""

    host: str
    port: int
    scheme: str
    user: str
    catalog: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSettings:
    """The files of the views, and the user that owns the views."""

    folder: Path
    games_file: Path
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSettings:
    """Settings of the catalog service; docs/settings.md describes each variable."""

    lakehouse: Location
    metastore: Location | None
    trino: TrinoSettings
    views: ViewSettings | None
    interval: timedelta
    measure_interval: timedelta
    metrics_host: str
    metrics_port: int
    metrics_tls: EndpointTls | None

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        lakehouse = LakehouseSettings.from_env(variables).location
        metastore = env.optional("GAMELAKE_CATALOG_METASTORE", "")
        return cls(
            lakehouse=lakehouse,
            metastore=Location(uri=metastore.rstrip("/"), options=lakehouse.options) if metastore else None,
            trino=_trino(env),
            views=_views(env),
            interval=timedelta(seconds=env.number("GAMELAKE_CATALOG_INTERVAL_SECONDS", 2, 0.1, 3_600)),
            measure_interval=timedelta(seconds=env.number("GAMELAKE_CATALOG_MEASURE_SECONDS", 10, 0, 3_600)),
            metrics_host=env.optional("GAMELAKE_METRICS_HOST", "127.0.0.1"),
            metrics_port=env.whole("GAMELAKE_METRICS_PORT", 9109, 0, 65_535),
            metrics_tls=endpoint_tls(env, "GAMELAKE_METRICS_CERTIFICATE_FILE", "GAMELAKE_METRICS_CA_FILE"),
        )


def _views(env: Environment) -> ViewSettings | None:
    folder = env.path("GAMELAKE_CATALOG_VIEWS")
    user = env.optional("GAMELAKE_CATALOG_VIEWS_USER", "views")
    if folder is None:
        return None
    return ViewSettings(folder=folder, games_file=Path(env.required("GAMELAKE_GAMES_FILE")), user=user)


def _trino(env: Environment) -> TrinoSettings:
    url = env.required("GAMELAKE_TRINO_URL")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/"):
        raise SettingsError(f"GAMELAKE_TRINO_URL is '{url}'; it must be like http://trino:8080")
    return TrinoSettings(
        host=parts.hostname,
        port=parts.port or (443 if parts.scheme == "https" else 80),
        scheme=parts.scheme,
        user=env.optional("GAMELAKE_TRINO_USER", "catalog"),
        catalog=env.optional("GAMELAKE_TRINO_CATALOG", "delta"),
    )
