"""The settings of the job that keeps the gold tables up."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from gamelake.model.environment import Environment
from gamelake.model.options import LineageOptions, TelemetryOptions, lineage_options, telemetry_options
from gamelake.storage.settings import LakehouseSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldSettings:
    """What the job that keeps the gold tables up needs to know."""

    lakehouse: LakehouseSettings
    games_file: Path
    telemetry: TelemetryOptions
    lineage: LineageOptions = field(default_factory=LineageOptions)
    spark_jars: Path | None = None

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            lakehouse=LakehouseSettings.from_env(variables),
            games_file=Path(env.required("GAMELAKE_GAMES_FILE")),
            telemetry=telemetry_options(env),
            lineage=lineage_options(env),
            spark_jars=env.path("GAMELAKE_SPARK_JARS"),
        )
