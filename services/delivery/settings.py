"""The settings of the delivery service, from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from gamelake.kafka import KafkaAccess, kafka_access
from gamelake.model.environment import Environment
from gamelake.model.options import TelemetryOptions, telemetry_options
from gamelake.objects.settings import landing
from gamelake.objects.store import Location

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """The settings of the service; docs/settings.md explains each variable."""

    kafka: KafkaAccess
    topic: str
    landing: Location
    prefix: str
    group: str
    max_bytes: int
    max_age: timedelta
    buffer_bytes: int
    telemetry: TelemetryOptions

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            kafka=kafka_access(env),
            topic=env.required("GAMELAKE_TOPIC"),
            landing=landing(variables),
            prefix=env.optional("GAMELAKE_DELIVERY_PREFIX", "delivered/"),
            group=env.optional("GAMELAKE_DELIVERY_GROUP", "delivery"),
            max_bytes=env.whole("GAMELAKE_DELIVERY_MIB", 8, 1, 128) * MIB,
            max_age=timedelta(seconds=env.number("GAMELAKE_DELIVERY_SECONDS", 60, 0.1, 900)),
            buffer_bytes=env.whole("GAMELAKE_DELIVERY_BUFFER_MIB", 24, 4, 4_096) * MIB,
            telemetry=telemetry_options(env),
        )
