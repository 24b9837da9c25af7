"""The settings of the jobs that ask, describe and keep up all tables of a lakehouse."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gamelake.failpoints import Kill
from gamelake.settings.environment import Environment, kill
from gamelake.settings.lakehouse import LakehouseSettings

_MIB = 2**20


def compact_here_bytes(env: Environment) -> int:
    """How many bytes of files are packed into one in a job's own process.

    Raises:
        SettingsError: the variable is malformed.
    """
    return env.whole("GAMELAKE_COMPACT_HERE_MIB", 64, 1, 1_024) * _MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """What a job over all tables needs to know."""

    lakehouse: LakehouseSettings
    games_file: Path
    spark_jars: Path | None = None
    kill: Kill | None = None
    compact_here_bytes: int = 64 * _MIB

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
            spark_jars=env.path("GAMELAKE_SPARK_JARS"),
            kill=kill(env),
            compact_here_bytes=compact_here_bytes(env),
        )
