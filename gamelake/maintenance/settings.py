"""The settings of the maintenance scheduler."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Self

from gamelake.kafka import KafkaAccess, kafka_access
from gamelake.model.environment import Environment
from gamelake.model.options import TelemetryOptions, telemetry_options
from gamelake.storage.settings import LakehouseSettings, local_compaction_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsTopic:
    """The events topic, whose retention is compared with that of the tables, and how to reach Kafka."""

    kafka: KafkaAccess
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceSettings:
    """Settings of the maintenance scheduler; without Kafka's address its retention is not checked."""

    lakehouse: LakehouseSettings
    games_file: Path
    schedule_file: Path
    telemetry: TelemetryOptions
    topic: EventsTopic | None
    local_compaction_bytes: int
    measure_interval: timedelta
    grace: timedelta

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
            schedule_file=Path(env.required("GAMELAKE_SCHEDULE_FILE")),
            telemetry=telemetry_options(env),
            topic=_topic(env),
            local_compaction_bytes=local_compaction_bytes(env),
            measure_interval=timedelta(seconds=env.number("GAMELAKE_MAINTENANCE_MEASURE_SECONDS", 300, 0, 3_600)),
            grace=timedelta(seconds=env.number("GAMELAKE_MAINTENANCE_GRACE_SECONDS", 45, 0, 3_600)),
        )


def _topic(env: Environment) -> EventsTopic | None:
    if not env.optional("GAMELAKE_BOOTSTRAP_SERVERS", ""):
        return None
    return EventsTopic(kafka=kafka_access(env), name=env.required("GAMELAKE_TOPIC"))
