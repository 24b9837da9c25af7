"""The settings of the jobs about the data of one person."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from gamelake.failpoints import Kill
from gamelake.lineage.options import LineageOptions
from gamelake.settings.environment import Environment, kill
from gamelake.settings.lakehouse import LakehouseSettings
from gamelake.settings.lineage import lineage_options
from gamelake.settings.vault import VaultSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSettings:
    """What the jobs about the data of one person need to know."""

    lakehouse: LakehouseSettings
    vault: VaultSettings
    games_file: Path
    lineage: LineageOptions = field(default_factory=LineageOptions)
    kill: Kill | None = field(default=None)

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            lakehouse=LakehouseSettings.from_env(variables),
            vault=VaultSettings.from_env(variables),
            games_file=Path(env.required("GAMELAKE_GAMES_FILE")),
            lineage=lineage_options(env),
            kill=kill(env),
        )
