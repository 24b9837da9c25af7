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
from gamelake.objects.settings import LakehouseSettings, local_compaction_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsTopic:
    """The events topic, whose retention is compared with the tables'.

    Attributes:
        kafka: access to Kafka.
        name: name of the topic.
    """

    kafka: KafkaAccess
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceSettings:
    """Settings of the maintenance scheduler.

    Attributes:
        lakehouse: the lakehouse.
        games_file: file of the games contract.
        schedule_file: file of the schedule.
        telemetry: metrics and traces.
        topic: the events topic; None without Kafka's address: its retention is not checked then.
        local_compaction_bytes: compaction in a task's process handles bins up to this size.
        measure_interval: time between measurements of the lakehouse for metrics.
        grace: a run may continue for this long after the scheduler was asked to stop.
    """

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
