"""The settings of the audit service, from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Self

from gamelake.kafka import KafkaAccess, kafka_access
from gamelake.model.environment import Environment, failpoint_setting
from gamelake.model.failpoints import Kill
from gamelake.model.options import TelemetryOptions, telemetry_options
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Location

_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The settings of the service; docs/settings.md explains each variable.

    Attributes:
        interval: how long a record may wait for others before it is committed.
        buffer_bytes: of the records that are committed at once.
        retention: how long rows are kept, by days of the tables.
        maintenance_interval: between two compactions and deletions.
    """

    kafka: KafkaAccess
    queries_topic: str
    support_calls_topic: str
    lakehouse: Location
    games_file: Path
    interval: timedelta
    buffer_bytes: int
    retention: timedelta
    maintenance_interval: timedelta
    telemetry: TelemetryOptions
    kill: Kill | None

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            kafka=kafka_access(env),
            queries_topic=env.optional("GAMELAKE_AUDIT_QUERIES_TOPIC", "audit.queries"),
            support_calls_topic=env.optional("GAMELAKE_AUDIT_SUPPORT_CALLS_TOPIC", "audit.support-calls"),
            lakehouse=LakehouseSettings.from_env(variables).location,
            games_file=Path(env.required("GAMELAKE_GAMES_FILE")),
            interval=timedelta(seconds=env.number("GAMELAKE_AUDIT_SECONDS", 2, 0.1, 300)),
            buffer_bytes=env.whole("GAMELAKE_AUDIT_BUFFER_MIB", 4, 1, 256) * _MIB,
            retention=timedelta(days=env.whole("GAMELAKE_AUDIT_RETENTION_DAYS", 400, 1, 36_500)),
            maintenance_interval=timedelta(seconds=env.number("GAMELAKE_AUDIT_MAINTENANCE_SECONDS", 3_600, 1, 86_400)),
            telemetry=telemetry_options(env),
            kill=failpoint_setting(env),
        )
