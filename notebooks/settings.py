"""The settings of the notebooks, from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Location
from gamelake.trino import TrinoAccess, trino_access

REPOSITORY = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookSettings:
    """The lakehouse, and the Trino that runs queries; without it, DuckDB runs them in this process."""

    lakehouse: Location | None
    trino: TrinoAccess | None
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
            trino=_trino(env) if url else None,
            spark_jars=Path(jars) if jars else None,
        )


def _trino(env: Environment) -> TrinoAccess:
    return trino_access(
        env,
        url="GAMELAKE_TRINO_URL",
        credentials_file="GAMELAKE_TRINO_CREDENTIALS_FILE",
        user="GAMELAKE_TRINO_USER",
        default_user="analyst",
    )
