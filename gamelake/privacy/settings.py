"""Settings of the jobs about the data of one player."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from gamelake.model.environment import Environment, failpoint_setting
from gamelake.model.failpoints import Kill
from gamelake.model.options import LineageOptions, lineage_options
from gamelake.objects.settings import LakehouseSettings
from gamelake.privacy.vault.settings import VaultSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerDataSettings:
    """Settings of the jobs about the data of one player."""

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
            kill=failpoint_setting(env),
        )
