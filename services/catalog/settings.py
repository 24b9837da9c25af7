"""The settings of the catalog service, from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Self

from gamelake.model.environment import Environment
from gamelake.model.options import TelemetryOptions, telemetry_options
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Location
from gamelake.trino import CATALOG, TrinoAccess, trino_access


@dataclass(frozen=True, slots=True, kw_only=True)
class TrinoSettings:
    """Access to Trino as one of the service's users, and Trino's name for the lakehouse."""

    access: TrinoAccess
    catalog: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSettings:
    """The files of the views, and Trino as the user that owns the views."""

    folder: Path
    games_file: Path
    trino: TrinoSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSettings:
    """Settings of the catalog service; docs/settings.md describes each variable."""

    lakehouse: Location
    metastore: Location | None
    trino: TrinoSettings
    views: ViewSettings | None
    interval: timedelta
    measure_interval: timedelta
    telemetry: TelemetryOptions

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
            telemetry=replace(telemetry_options(env), metrics_port=env.whole("GAMELAKE_METRICS_PORT", 9109, 0, 65_535)),
        )


def _trino(env: Environment) -> TrinoSettings:
    catalog = env.optional("GAMELAKE_TRINO_CATALOG", CATALOG)
    access = trino_access(
        env,
        url="GAMELAKE_TRINO_URL",
        credentials_file="GAMELAKE_TRINO_CREDENTIALS_FILE",
        user="GAMELAKE_TRINO_USER",
        default_user="catalog",
    )
    return TrinoSettings(access=access, catalog=catalog)


def _views(env: Environment) -> ViewSettings | None:
    folder = env.path("GAMELAKE_CATALOG_VIEWS")
    access = trino_access(
        env,
        url="GAMELAKE_TRINO_URL",
        credentials_file="GAMELAKE_CATALOG_VIEWS_CREDENTIALS_FILE",
        user="GAMELAKE_CATALOG_VIEWS_USER",
        default_user="views",
    )
    if folder is None:
        return None
    return ViewSettings(
        folder=folder,
        games_file=Path(env.required("GAMELAKE_GAMES_FILE")),
        trino=TrinoSettings(access=access, catalog=_trino(env).catalog),
    )
