"""The settings of the job that examines a lakehouse."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gamelake.kafka import KafkaAccess, kafka_access
from gamelake.model.environment import Environment
from gamelake.objects.settings import LakehouseSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorSettings:
    """The settings of an examination; without Kafka's address, Kafka is not asked."""

    lakehouse: LakehouseSettings
    games_file: Path
    kafka: KafkaAccess | None = None

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
            kafka=kafka_access(env) if env.optional("GAMELAKE_BOOTSTRAP_SERVERS", "") else None,
        )
